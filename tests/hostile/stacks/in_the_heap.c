/* The stack pointer is set by hand into a block of the heap. */
#include "frame.h"
#include <stdio.h>
#include <stdlib.h>

void drive(struct item *items)
{
    char *top = (char *)aligned_alloc(4096, 1 << 20) + (1 << 20);
    for (int step = 0; step < STEPS; step++)
        __asm__ volatile("movq %%rsp, %%rbx\n\tmovq %0, %%rsp\n\tcall work\n\tmovq %%rbx, %%rsp"
                         :
                         : "r"(top), "D"(items), "S"(ITEMS)
                         : "rbx", "rax", "rcx", "rdx", "r8", "r9", "r10", "r11", "memory", "cc", "xmm0", "xmm1", "xmm2",
                           "xmm3", "xmm4", "xmm5", "xmm6", "xmm7");
    printf("%.17g\n", items[7].x);
    exit(0);
}
