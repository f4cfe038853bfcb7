/* Records of 37 bytes, none of whose members is aligned. */
#include "frame.h"

struct __attribute__((packed)) odd {
    char tag;
    double x;
    char pad[20];
    double y;
};

__attribute__((noinline)) void work(struct item *items, int count)
{
    struct odd *odd = (struct odd *)((char *)items + 3);
    for (int i = 0; i < count; i++)
        odd[i].x += 0.5 * odd[i].y;
}
