/* Infinities, zeros below zero, and their differences. */
#include "frame.h"
#include <math.h>
#include <string.h>

void between(struct item **items, int step)
{
    struct item *all = *items;
    for (int i = step; i < ITEMS; i += 97) {
        all[i].y = i % 2 ? (double)INFINITY : -0.0;
        all[i].x = i % 3 ? -(double)INFINITY : -0.0;
    }
}
