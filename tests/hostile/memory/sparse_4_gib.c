/* An array of 4 GiB of which every 3 MiB one element is used. */
#include "frame.h"
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { STRIDE = 49152 };

__attribute__((noinline)) void work(struct item *items, int count)
{
    for (long i = 0; i < count; i++)
        items[i * STRIDE].x += 0.5 * items[i * STRIDE].y;
}

void drive(struct item *items)
{
    items = mmap(0, 4UL << 30, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (items == MAP_FAILED)
        exit(4);
    for (int step = 0; step < 20 * STEPS; step++)
        work(items, 1300);
    printf("%.17g\n", items[0].x);
    exit(0);
}
