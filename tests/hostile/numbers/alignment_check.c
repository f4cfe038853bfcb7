/* The flag of alignment checks is set for a moment, and the one of identification stays. */
#include "frame.h"

void before(int argc, char **argv)
{
    (void)argc, (void)argv;
    __asm__ volatile("pushfq\n\torq $0x200000, (%%rsp)\n\tpopfq" : : : "cc", "memory");
}
