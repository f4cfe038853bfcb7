/* The old floating-point unit has its registers in use. */
#include "frame.h"

void before(int argc, char **argv)
{
    (void)argc, (void)argv;
    for (int i = 0; i < 6; i++)
        __asm__ volatile("fld1");
}
