/* Members of 3, 11 and 50 bits. */
#include "frame.h"
struct bits {
    unsigned long a : 3, b : 11, c : 50;
};

__attribute__((noinline)) void work(struct item *items, int count)
{
    for (int i = 0; i < count; i++) {
        struct bits *bits = (struct bits *)&items[i].c;
        bits->b += bits->a + 1;
        bits->c ^= bits->b;
        bits->a++;
    }
}
