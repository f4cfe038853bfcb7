/* Halves of the members, as float. */
#include "frame.h"

__attribute__((noinline)) void work(struct item *items, int count)
{
    for (int i = 0; i < count; i++) {
        float *pair = (float *)&items[i].z;
        pair[0] = pair[0] * 0.999f + pair[1];
        pair[1] = (float)i;
    }
}
