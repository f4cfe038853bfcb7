/* Another array at each call. */
#include "frame.h"
#include <stdlib.h>
#include <string.h>

void between(struct item **items, int step)
{
    (void)step;
    struct item *fresh = malloc(sizeof *fresh * ITEMS);
    memcpy(fresh, *items, sizeof *fresh * ITEMS);
    free(*items);
    *items = fresh;
}
