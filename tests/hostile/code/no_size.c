/* The hot function's symbol has no size and no type. */
#include "frame.h"

__asm__(".text\n.globl work\nwork:\n"
        "  testl %esi, %esi\n  jle 9f\n"
        "1: movsd 8(%rdi), %xmm0\n  mulsd half(%rip), %xmm0\n  addsd (%rdi), %xmm0\n  movsd %xmm0, (%rdi)\n"
        "  addq $64, %rdi\n  decl %esi\n  jnz 1b\n9: ret\n"
        ".section .rodata\n.align 8\nhalf: .double 0.5\n.text\n");
