/* Its output goes to a device without room. */
#include "frame.h"
#include <stdio.h>

int after(struct item *items)
{
    (void)items;
    FILE *full = fopen("/dev/full", "w");
    return full && fputs("x", full) >= 0 && fclose(full) != 0 ? 7 : 0;
}
