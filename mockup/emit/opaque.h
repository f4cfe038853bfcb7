/* Calls of the program's own machine code from a mock-up, with all the registers that may hold arguments (System V ABI).
 * SPDX-License-Identifier: MIT */
#ifndef LAYOUT_ADVISE_OPAQUE_H
#define LAYOUT_ADVISE_OPAQUE_H
#include <stdint.h>

/* The offsets are known to the code below, which loads everything, calls, and stores everything. */
struct la_call {
    int64_t rdi, rsi, rdx, rcx, r8, r9, rax, r10, r11;
    int64_t target, stack, slot, wide;
    int64_t vector[16][4];
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
        "    movq 80(%rbx), %rax\n"
        "    testq %rax, %rax\n"
        "    jz 1f\n"
        "    movq %rax, %rsp\n"
        "    movq -8(%rsp), %rax\n"
        "    movq %rax, 88(%rbx)\n"
        "    jmp 2f\n"
        "1:  andq $-16, %rsp\n"
        "2:  cmpq $0, 96(%rbx)\n"
        "    jne 4f\n"
        "    movups 104(%rbx), %xmm0\n"
        "    movups 136(%rbx), %xmm1\n"
        "    movups 168(%rbx), %xmm2\n"
        "    movups 200(%rbx), %xmm3\n"
        "    movups 232(%rbx), %xmm4\n"
        "    movups 264(%rbx), %xmm5\n"
        "    movups 296(%rbx), %xmm6\n"
        "    movups 328(%rbx), %xmm7\n"
        "    movups 360(%rbx), %xmm8\n"
        "    movups 392(%rbx), %xmm9\n"
        "    movups 424(%rbx), %xmm10\n"
        "    movups 456(%rbx), %xmm11\n"
        "    movups 488(%rbx), %xmm12\n"
        "    movups 520(%rbx), %xmm13\n"
        "    movups 552(%rbx), %xmm14\n"
        "    movups 584(%rbx), %xmm15\n"
        "    jmp 5f\n"
        "4:  vmovups 104(%rbx), %ymm0\n"
        "    vmovups 136(%rbx), %ymm1\n"
        "    vmovups 168(%rbx), %ymm2\n"
        "    vmovups 200(%rbx), %ymm3\n"
        "    vmovups 232(%rbx), %ymm4\n"
        "    vmovups 264(%rbx), %ymm5\n"
        "    vmovups 296(%rbx), %ymm6\n"
        "    vmovups 328(%rbx), %ymm7\n"
        "    vmovups 360(%rbx), %ymm8\n"
        "    vmovups 392(%rbx), %ymm9\n"
        "    vmovups 424(%rbx), %ymm10\n"
        "    vmovups 456(%rbx), %ymm11\n"
        "    vmovups 488(%rbx), %ymm12\n"
        "    vmovups 520(%rbx), %ymm13\n"
        "    vmovups 552(%rbx), %ymm14\n"
        "    vmovups 584(%rbx), %ymm15\n"
        "5:  movq 8(%rbx), %rsi\n"
        "    movq 16(%rbx), %rdx\n"
        "    movq 24(%rbx), %rcx\n"
        "    movq 32(%rbx), %r8\n"
        "    movq 40(%rbx), %r9\n"
        "    movq 48(%rbx), %rax\n"
        "    movq 56(%rbx), %r10\n"
        "    movq 64(%rbx), %r11\n"
        "    movq 0(%rbx), %rdi\n"
        "    callq *72(%rbx)\n"
        "    movq %rdi, 0(%rbx)\n"
        "    movq %rsi, 8(%rbx)\n"
        "    movq %rdx, 16(%rbx)\n"
        "    movq %rcx, 24(%rbx)\n"
        "    movq %r8, 32(%rbx)\n"
        "    movq %r9, 40(%rbx)\n"
        "    movq %rax, 48(%rbx)\n"
        "    movq %r10, 56(%rbx)\n"
        "    movq %r11, 64(%rbx)\n"
        "    cmpq $0, 80(%rbx)\n"
        "    je 3f\n"
        "    movq 88(%rbx), %rcx\n"
        "    movq %rcx, -8(%rsp)\n"
        "3:  movq %rbp, %rsp\n"
        "    movups %xmm0, 104(%rbx)\n"
        "    movups %xmm1, 136(%rbx)\n"
        "    movups %xmm2, 168(%rbx)\n"
        "    movups %xmm3, 200(%rbx)\n"
        "    movups %xmm4, 232(%rbx)\n"
        "    movups %xmm5, 264(%rbx)\n"
        "    movups %xmm6, 296(%rbx)\n"
        "    movups %xmm7, 328(%rbx)\n"
        "    movups %xmm8, 360(%rbx)\n"
        "    movups %xmm9, 392(%rbx)\n"
        "    movups %xmm10, 424(%rbx)\n"
        "    movups %xmm11, 456(%rbx)\n"
        "    movups %xmm12, 488(%rbx)\n"
        "    movups %xmm13, 520(%rbx)\n"
        "    movups %xmm14, 552(%rbx)\n"
        "    movups %xmm15, 584(%rbx)\n"
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

/* The same as inline assembly, where the operands are few enough: each value is in its register, and the compiler knows what the
 * callee may change. The callee runs on the mock-up's own stack, below what a compiler may keep there without moving the
 * pointer; or on the program's, where it finds its arguments, and its return address goes where the original's went. */
typedef double la_f64x2_handed __attribute__((vector_size(16)));
struct la_i { int64_t rax; };
struct la_d { double xmm0; };
struct la_ii { int64_t rax, rdx; };
struct la_id { int64_t rax; double xmm0; };
struct la_dd { double xmm0, xmm1; };
struct la_v { la_f64x2_handed xmm0; };
#define LA_LOW(x) {x, 0}
#define LA_CALL "movq %%rsp, %%rbx\n\tleaq -128(%%rsp), %%rsp\n\tandq $-16, %%rsp\n\tcallq *%[target]\n\tmovq %%rbx, %%rsp"
#define LA_CALL_ON_STACK                                                                            \
    "movq %%rsp, %%rbx\n\tmovq %[stack], %%rsp\n\tmovq -8(%%rsp), %%r12\n\tcallq *%[target]\n\t" \
    "movq %%r12, -8(%%rsp)\n\tmovq %%rbx, %%rsp"
#ifdef __AVX512F__
#define LA_MORE_CLOBBERS                                                                                             \
    , "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", "xmm23", "xmm24", "xmm25", "xmm26", "xmm27", \
        "xmm28", "xmm29", "xmm30", "xmm31", "k1", "k2", "k3", "k4", "k5", "k6", "k7"
#else
#define LA_MORE_CLOBBERS
#endif

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
