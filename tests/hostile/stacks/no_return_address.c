/* The hot function is entered by a jump, with a return address that no call made. */
#include "frame.h"
#include <stdio.h>
#include <stdlib.h>

void drive(struct item *items)
{
    for (int step = 0; step < STEPS; step++)
        __asm__ volatile("movq %%rsp, %%rbx\n\tandq $-64, %%rsp\n\tleaq 1f(%%rip), %%rax\n\tpushq %%rax\n\tjmp work\n1:\n\t"
                         "movq %%rbx, %%rsp"
                         :
                         : "D"(items), "S"(ITEMS)
                         : "rbx", "rax", "rcx", "rdx", "r8", "r9", "r10", "r11", "memory", "cc", "xmm0", "xmm1", "xmm2",
                           "xmm3", "xmm4", "xmm5", "xmm6", "xmm7");
    printf("%.17g\n", items[7].x);
    exit(0);
}
