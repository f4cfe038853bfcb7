/* Calls of the program's own machine code from a mock-up, with all the registers that may hold arguments (System V ABI).
 * SPDX-License-Identifier: MIT */
#ifndef LAYOUT_ADVISE_OPAQUE_H
#define LAYOUT_ADVISE_OPAQUE_H
#include <stdint.h>

/* The offsets are known to the code below. Afterwards rax, rdx and vector[0..1] hold what was returned. */
struct la_call {
    int64_t rdi, rsi, rdx, rcx, r8, r9, rax;
    int64_t target, stack, slot, wide;
    int64_t vector[8][4];
};

/* With call->stack the callee runs on that stack, where it finds its arguments, and its return address goes where the
 * original's went (what stood there is put back); without, on the mock-up's own. With call->wide whole 256-bit registers are
 * handed over. */
extern void la_opaque_call(struct la_call *call) __attribute__((visibility("hidden")));
__asm__(".pushsection .text\n"
        ".p2align 4\n"
        "la_opaque_call:\n"
        "    endbr64\n"
        "    pushq %rbx\n"
        "    pushq %rbp\n"
        "    movq %rdi, %rbx\n"
        "    movq %rsp, %rbp\n"
        "    movq 64(%rbx), %rax\n"
        "    testq %rax, %rax\n"
        "    jz 1f\n"
        "    movq %rax, %rsp\n"
        "    movq -8(%rsp), %rax\n"
        "    movq %rax, 72(%rbx)\n"
        "    jmp 2f\n"
        "1:  andq $-16, %rsp\n"
        "2:  cmpq $0, 80(%rbx)\n"
        "    jne 4f\n"
        "    movups 88(%rbx), %xmm0\n"
        "    movups 120(%rbx), %xmm1\n"
        "    movups 152(%rbx), %xmm2\n"
        "    movups 184(%rbx), %xmm3\n"
        "    movups 216(%rbx), %xmm4\n"
        "    movups 248(%rbx), %xmm5\n"
        "    movups 280(%rbx), %xmm6\n"
        "    movups 312(%rbx), %xmm7\n"
        "    jmp 5f\n"
        "4:  vmovups 88(%rbx), %ymm0\n"
        "    vmovups 120(%rbx), %ymm1\n"
        "    vmovups 152(%rbx), %ymm2\n"
        "    vmovups 184(%rbx), %ymm3\n"
        "    vmovups 216(%rbx), %ymm4\n"
        "    vmovups 248(%rbx), %ymm5\n"
        "    vmovups 280(%rbx), %ymm6\n"
        "    vmovups 312(%rbx), %ymm7\n"
        "5:  movq 8(%rbx), %rsi\n"
        "    movq 16(%rbx), %rdx\n"
        "    movq 24(%rbx), %rcx\n"
        "    movq 32(%rbx), %r8\n"
        "    movq 40(%rbx), %r9\n"
        "    movq 48(%rbx), %rax\n"
        "    movq 0(%rbx), %rdi\n"
        "    callq *56(%rbx)\n"
        "    cmpq $0, 64(%rbx)\n"
        "    je 3f\n"
        "    movq 72(%rbx), %rcx\n"
        "    movq %rcx, -8(%rsp)\n"
        "3:  movq %rbp, %rsp\n"
        "    movq %rax, 48(%rbx)\n"
        "    movq %rdx, 16(%rbx)\n"
        "    movups %xmm0, 88(%rbx)\n"
        "    movups %xmm1, 120(%rbx)\n"
        "    popq %rbp\n"
        "    popq %rbx\n"
        "    retq\n"
        ".popsection\n");

static inline __attribute__((always_inline, unused)) void la_opaque(struct la_call *call, int64_t target, int64_t stack)
{
    call->target = target;
    call->stack = stack;
    la_opaque_call(call);
}

/* String instructions: their time is the instruction's own. */
#define LA_MOVS(name)                                                                            \
    static inline __attribute__((always_inline, unused)) void la_rep_##name(int64_t to, int64_t from, int64_t n) \
    {                                                                                            \
        __asm__ volatile("rep " #name : "+D"(to), "+S"(from), "+c"(n) : : "memory");            \
    }
#define LA_STOS(name)                                                                            \
    static inline __attribute__((always_inline, unused)) void la_rep_##name(int64_t to, int64_t value, int64_t n) \
    {                                                                                            \
        __asm__ volatile("rep " #name : "+D"(to), "+c"(n) : "a"(value) : "memory");             \
    }
LA_MOVS(movsb)
LA_MOVS(movsw)
LA_MOVS(movsq)
LA_STOS(stosb)
LA_STOS(stosw)
LA_STOS(stosq)
static inline __attribute__((always_inline, unused)) void la_rep_movsd(int64_t to, int64_t from, int64_t n)
{
    __asm__ volatile("rep movsl" : "+D"(to), "+S"(from), "+c"(n) : : "memory");
}
static inline __attribute__((always_inline, unused)) void la_rep_stosd(int64_t to, int64_t value, int64_t n)
{
    __asm__ volatile("rep stosl" : "+D"(to), "+c"(n) : "a"(value) : "memory");
}
#endif
