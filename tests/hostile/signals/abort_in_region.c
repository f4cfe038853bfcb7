/* abort() in the hot loop. */
#include "frame.h"
#include <stdlib.h>

static int calls;

void inside(struct item *items, int i)
{
    (void)items;
    if (i == 0 && ++calls == 500)
        abort();
}
