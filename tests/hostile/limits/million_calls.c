/* The hot function is called a million times, for eight elements. */
#include "frame.h"
#include <stdio.h>
#include <stdlib.h>

void drive(struct item *items)
{
    for (int step = 0; step < 1000000; step++)
        work(items + step % 1000, 8);
    printf("%.17g\n", items[7].x);
    exit(0);
}
