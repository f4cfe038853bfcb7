/* The hot function jumps into the middle of one of its instructions. */
#include "frame.h"

__asm__(".text\n.globl work\n.type work,@function\nwork:\n"
        "  testl %esi, %esi\n  jle 9f\n"
        "1: jmp 2f\n"
        "  .byte 0xb8\n" /* movl $imm32, %eax, whose constant is the nop below */
        "2: .byte 0x0f,0x1f,0x40,0x00\n"
        "  movsd 8(%rdi), %xmm0\n  mulsd half(%rip), %xmm0\n  addsd (%rdi), %xmm0\n  movsd %xmm0, (%rdi)\n"
        "  addq $64, %rdi\n  decl %esi\n  jnz 1b\n9: ret\n.size work,.-work\n"
        ".section .rodata\n.align 8\nhalf: .double 0.5\n.text\n");
