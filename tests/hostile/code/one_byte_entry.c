/* The hot function's entry has no room for a jump: the loop comes back to its second byte. */
#include "frame.h"

__asm__(".text\n.globl work\n.type work,@function\nwork:\n"
        "  nop\n"
        "1: movsd 8(%rdi), %xmm0\n  mulsd half(%rip), %xmm0\n  addsd (%rdi), %xmm0\n  movsd %xmm0, (%rdi)\n"
        "  addq $64, %rdi\n  decl %esi\n  jnz 1b\n  ret\n.size work,.-work\n"
        ".section .rodata\n.align 8\nhalf: .double 0.5\n.text\n");
