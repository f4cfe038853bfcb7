/* The hot function 50,000 frames down. */
#include "frame.h"
#include <stdio.h>
#include <stdlib.h>

__attribute__((noinline)) static int down(struct item *items, int depth)
{
    volatile int here = depth;
    if (depth == 0)
        for (int step = 0; step < STEPS; step++)
            work(items, ITEMS);
    else
        here += down(items, depth - 1);
    return here & 1;
}

void drive(struct item *items)
{
    int odd = down(items, 50000);
    printf("%.17g %d\n", items[7].x, odd);
    exit(0);
}
