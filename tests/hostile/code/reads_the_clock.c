/* The hot loop reads the time-stamp counter. */
#include "frame.h"
#include <x86intrin.h>

__attribute__((noinline)) void work(struct item *items, int count)
{
    for (int i = 0; i < count; i++) {
        items[i].x += 0.5 * items[i].y;
        if (i % 1000 == 0)
            items[i].a = (long)__rdtsc();
    }
}
