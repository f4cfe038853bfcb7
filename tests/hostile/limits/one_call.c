/* The hot function is called once. */
#include "frame.h"
#include <stdio.h>
#include <stdlib.h>

void drive(struct item *items)
{
    work(items, ITEMS);
    printf("%.17g\n", items[7].x);
    exit(0);
}
