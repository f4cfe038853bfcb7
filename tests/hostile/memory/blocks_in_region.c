/* The hot loop allocates. */
#include "frame.h"
#include <stdlib.h>

__attribute__((noinline)) void work(struct item *items, int count)
{
    for (int i = 0; i < count; i += 16) {
        double *volatile block = malloc(16 + (size_t)(i & 255));
        *block = items[i].y;
        items[i].x += 0.5 * *block;
        free(block);
    }
}
