/* Numbers too small to be normal. */
#include "frame.h"
#include <math.h>
#include <string.h>

void between(struct item **items, int step)
{
    struct item *all = *items;
    for (int i = step; i < ITEMS; i += 97)
        all[i].y = 4.9406564584124654e-324 * i;
}
