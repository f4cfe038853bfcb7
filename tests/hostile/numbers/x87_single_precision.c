/* The old floating-point unit computes with 24 bits. */
#include "frame.h"

void before(int argc, char **argv)
{
    (void)argc, (void)argv;
    unsigned short word = 0x007f;
    __asm__ volatile("fldcw %0" : : "m"(word));
}
