/* A million allocations a second. */
#include "frame.h"
#include <stdlib.h>

void between(struct item **items, int step)
{
    (void)items;
    for (int i = 0; i < 2000; i++) {
        void *volatile block = malloc((size_t)(step + i) % 300 + 1);
        free(block);
    }
}
