/* 6 MiB of the 8 MiB of stack. */
#include "frame.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void drive(struct item *items)
{
    struct item here[6 * 1024 * 16];
    memcpy(here, items, sizeof *items * ITEMS);
    for (int step = 0; step < STEPS; step++)
        work(here, ITEMS);
    printf("%.17g\n", here[7].x);
    exit(0);
}
