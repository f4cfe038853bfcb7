/* The hot loop copies and fills with rep. */
#include "frame.h"

__attribute__((noinline)) void work(struct item *items, int count)
{
    for (int i = 0; i + 1 < count; i += 2) {
        void *to = &items[i].a, *from = &items[i + 1].x;
        long words = 4;
        __asm__ volatile("cld\n\trep movsq" : "+D"(to), "+S"(from), "+c"(words) : : "memory");
        items[i].x += 0.5 * items[i].y;
    }
}
