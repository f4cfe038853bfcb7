/* Integers of 128 bits. */
#include "frame.h"

__attribute__((noinline)) void work(struct item *items, int count)
{
    for (int i = 0; i < count; i++) {
        __int128 wide = ((__int128)items[i].a << 64 | (unsigned long)items[i].b) + (__int128)i * 0x123456789abcdefLL;
        items[i].a = (long)(wide >> 64);
        items[i].b = (long)wide;
    }
}
