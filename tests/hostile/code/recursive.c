/* The hot function calls itself for both halves. */
#include "frame.h"

__attribute__((noinline, optimize("no-optimize-sibling-calls"))) void work(struct item *items, int count)
{
    if (count <= 8) {
        for (int i = 0; i < count; i++)
            items[i].x += 0.5 * items[i].y;
        return;
    }
    work(items, count / 2);
    work(items + count / 2, count - count / 2);
}
