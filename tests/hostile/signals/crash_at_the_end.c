/* A fault after the work. */
#include "frame.h"
#include <stdio.h>

int after(struct item *items)
{
    fflush(stdout);
    volatile long *nowhere = (long *)(items->a & 7);
    return (int)*nowhere;
}
