/* The hot loop asks the processor for random numbers and for what it is. */
#include "frame.h"
#include <cpuid.h>

__attribute__((noinline)) void work(struct item *items, int count)
{
    unsigned a, b, c, d;
    for (int i = 0; i < count; i++) {
        items[i].x += 0.5 * items[i].y;
        if (i % 10000 == 0) {
            __cpuid(0, a, b, c, d);
            items[i].b = (long)(a ^ b ^ c ^ d);
            __asm__ volatile("rdrand %0" : "=r"(items[i].a) : : "cc");
        }
    }
}
