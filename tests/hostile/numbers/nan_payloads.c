/* NaN with payloads, quiet and signalling. */
#include "frame.h"
#include <math.h>
#include <string.h>

void between(struct item **items, int step)
{
    struct item *all = *items;
    for (long i = step; i < ITEMS; i += 997) {
        long bits = 0x7ff0000000000001 + i * 0x10001 + (i % 3 ? 0x8000000000000 : 0);
        memcpy(i % 2 ? &all[i].y : &all[i].x, &bits, 8);
    }
}
