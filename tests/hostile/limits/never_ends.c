/* It does not end. */
#include "frame.h"
#include <unistd.h>

int after(struct item *items)
{
    (void)items;
    for (;;)
        pause();
}
