/* The hot loop writes. */
#include "frame.h"
#include <unistd.h>

void inside(struct item *items, int i)
{
    static int calls;
    (void)items;
    if (i == 0 && calls++ % 50 == 0 && write(1, "x\n", 2) != 2)
        _exit(4);
}
