/* The hot loop jumps through a table of labels. */
#include "frame.h"

__attribute__((noinline)) void work(struct item *items, int count)
{
    static void *const ways[] = {&&even, &&odd, &&end};
    int i = -1;
next:
    i++;
    goto *ways[i < count ? i & 1 : 2];
even:
    items[i].x += 0.5 * items[i].y;
    goto next;
odd:
    items[i].x += 0.25 * items[i].y;
    goto next;
end:;
}
