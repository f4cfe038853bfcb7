/* Sums of 80 bits. */
#include "frame.h"

__attribute__((noinline)) void work(struct item *items, int count)
{
    long double sum = 0;
    for (int i = 0; i < count; i++) {
        sum += (long double)items[i].y * 0.5L;
        items[i].x += (double)sum;
    }
}
