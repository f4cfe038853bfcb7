/* The hot function is an indirect one, chosen when it is loaded. */
#include "frame.h"

static void plain(struct item *items, int count)
{
    for (int i = 0; i < count; i++)
        items[i].x += 0.5 * items[i].y;
}

static void (*choose(void))(struct item *, int)
{
    return plain;
}

void work(struct item *items, int count) __attribute__((ifunc("choose")));
