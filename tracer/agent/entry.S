/* The places where the agent meets the program's registers.
 * SPDX-License-Identifier: MIT */
    .text

/* Slow path of the entry stub: flags are pushed already, below a skipped red zone. Builds struct la_frame. */
    .globl la_slow
    .hidden la_slow
    .type la_slow, @function
la_slow:
    push %r15; push %r14; push %r13; push %r12; push %r11; push %r10; push %r9; push %r8
    push %rdi; push %rsi; push %rbp; push %rbx; push %rdx; push %rcx; push %rax
    mov %rsp, %rdi
    mov %rsp, %rbp
    and $-16, %rsp
    cld
    call la_on_event
    mov %rbp, %rsp
    pop %rax; pop %rcx; pop %rdx; pop %rbx; pop %rbp; pop %rsi; pop %rdi
    pop %r8; pop %r9; pop %r10; pop %r11; pop %r12; pop %r13; pop %r14; pop %r15
    jmp *la_resume(%rip)

/* A timed call returns here. la_on_return gives back the true return address. */
    .globl la_return
    .hidden la_return
    .type la_return, @function
la_return:
    lea -8(%rsp), %rsp
    pushfq
    push %r15; push %r14; push %r13; push %r12; push %r11; push %r10; push %r9; push %r8
    push %rdi; push %rsi; push %rbp; push %rbx; push %rdx; push %rcx; push %rax
    lea 128(%rsp), %rdi
    mov %rsp, %rbp
    and $-16, %rsp
    cld
    call la_on_return
    mov %rbp, %rsp
    mov %rax, 128(%rsp)
    pop %rax; pop %rcx; pop %rdx; pop %rbx; pop %rbp; pop %rsi; pop %rdi
    pop %r8; pop %r9; pop %r10; pop %r11; pop %r12; pop %r13; pop %r14; pop %r15
    popfq
    ret

/* The loader's notification of a changed module list; an empty function otherwise. */
    .globl la_dl_hook
    .hidden la_dl_hook
    .type la_dl_hook, @function
la_dl_hook:
    push %rbp
    mov %rsp, %rbp
    push %rax; push %rcx; push %rdx; push %rsi; push %rdi; push %r8; push %r9; push %r10; push %r11; push %rbx
    and $-16, %rsp
    call la_on_modules
    lea -80(%rbp), %rsp
    pop %rbx; pop %r11; pop %r10; pop %r9; pop %r8; pop %rdi; pop %rsi; pop %rdx; pop %rcx; pop %rax
    pop %rbp
    ret

    .globl la_on_stack
    .hidden la_on_stack
    .type la_on_stack, @function
la_on_stack:
    mov %rdi, %rsp
    and $-16, %rsp
    xor %ebp, %ebp
    call *%rsi
    ud2

/* Save what the agent's C needs, point r15 at la_replay_state, load the parked vector state. */
    .macro la_enter
    push %rbx; push %rbp; push %r12; push %r13; push %r14; push %r15
    sub $8, %rsp
    stmxcsr (%rsp)
    fnstcw 4(%rsp)
    lea la_replay_state(%rip), %r15
    mov %rsp, 32(%r15)
    mov 16(%r15), %eax
    mov 20(%r15), %edx
    mov 8(%r15), %rsi
    xrstor64 (%rsi)
    .endm
    .macro la_leave
    mov 16(%r15), %eax
    mov 20(%r15), %edx
    mov 56(%r15), %rsi
    xsave64 (%rsi)
    fninit
    ldmxcsr (%rsp)
    fldcw 4(%rsp)
    add $8, %rsp
    pop %r15; pop %r14; pop %r13; pop %r12; pop %rbp; pop %rbx
    ret
    .endm
    .macro la_stamp offset
    lfence
    rdtsc
    shl $32, %rdx
    or %rdx, %rax
    mov %rax, \offset(%r15)
    .endm

/* The original: every parked register, the parked stack, and only the return address swapped. */
    .globl la_replay_original
    .hidden la_replay_original
    .type la_replay_original, @function
la_replay_original:
    la_enter
    mov (%r15), %rbx
    mov 32(%rbx), %rcx
    mov (%rcx), %rax
    mov %rax, 40(%r15)
    lea la_capture(%rip), %rax
    mov %rax, (%rcx)
    pushq 136(%rbx)
    la_stamp 64
    popfq
    mov 0(%rbx), %rax
    mov 8(%rbx), %rcx
    mov 16(%rbx), %rdx
    mov 32(%rbx), %rsp
    mov 40(%rbx), %rbp
    mov 48(%rbx), %rsi
    mov 56(%rbx), %rdi
    mov 64(%rbx), %r8
    mov 72(%rbx), %r9
    mov 80(%rbx), %r10
    mov 88(%rbx), %r11
    mov 96(%rbx), %r12
    mov 104(%rbx), %r13
    mov 112(%rbx), %r14
    mov 120(%rbx), %r15
    mov 24(%rbx), %rbx
    jmp *la_replay_state+24(%rip)
la_capture:
    mov %rax, la_replay_state+88(%rip)
    mov %rdx, la_replay_state+96(%rip)
    mov la_replay_state+48(%rip), %rax
    mov %rcx, 8(%rax)
    mov %rdx, 16(%rax)
    mov %rbx, 24(%rax)
    mov %rsp, 32(%rax)
    mov %rbp, 40(%rax)
    mov %rsi, 48(%rax)
    mov %rdi, 56(%rax)
    mov %r8, 64(%rax)
    mov %r9, 72(%rax)
    mov %r10, 80(%rax)
    mov %r11, 88(%rax)
    mov %r12, 96(%rax)
    mov %r13, 104(%rax)
    mov %r14, 112(%rax)
    mov %r15, 120(%rax)
    mov %rax, %rbx
    lea la_replay_state(%rip), %r15
    mov 88(%r15), %rax
    mov %rax, 0(%rbx)
    mov 32(%r15), %rsp
    pushfq
    popq 136(%rbx)
    cld
    la_stamp 72
    mov (%r15), %rbx
    mov 32(%rbx), %rcx
    mov 40(%r15), %rax
    mov %rax, (%rcx)
    la_leave

/* A mock-up: an ordinary C call on the agent's stack, with the parked vector state and MXCSR. */
    .globl la_replay_mockup
    .hidden la_replay_mockup
    .type la_replay_mockup, @function
la_replay_mockup:
    la_enter
    la_stamp 64
    mov 80(%r15), %rdi
    mov %rsp, %rbp
    and $-16, %rsp
    call *24(%r15)
    lea la_replay_state(%rip), %r15
    mov 32(%r15), %rsp
    la_stamp 72
    la_leave

/* What the team's threads enter instead of the outlined function: with all arguments on to where la_team_target says. */
    .globl la_team_enter
    .hidden la_team_enter
    .type la_team_enter, @function
la_team_enter:
    push %rdi; push %rsi; push %rdx; push %rcx; push %r8; push %r9
    lea 48(%rsp), %rdi
    sub $8, %rsp
    call la_team_target
    add $8, %rsp
    pop %r9; pop %r8; pop %rcx; pop %rdx; pop %rsi; pop %rdi
    jmp *%rax

    .section .note.GNU-stack, "", @progbits
