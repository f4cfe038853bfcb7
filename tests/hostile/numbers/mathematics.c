/* The mathematics library. */
#include "frame.h"
#include <math.h>

__attribute__((noinline)) void work(struct item *items, int count)
{
    for (int i = 0; i < count; i++)
        items[i].x += sin(items[i].y) * exp(-items[i].y);
}
