/* The places where the agent meets the program's registers.
 * SPDX-License-Identifier: MIT */
    .text

/* Slow path of the entry stub: flags are pushed already, below a skipped red zone. Builds struct la_frame. In a trial it goes
 * on on a stack of its own, if that is free: a mock-up writes to where the original's frame would be, below the call's. */
    .macro la_event resume, live, region=0
    push %r15; push %r14; push %r13; push %r12; push %r11; push %r10; push %r9; push %r8
    push %rdi; push %rsi; push %rbp; push %rbx; push %rdx; push %rcx; push %rax
    mov %rsp, %rdi
    mov $\region, %esi
    mov %rsp, %rbp
    xor %eax, %eax
    xchg %rax, la_event_stack(%rip)
    mov %rax, %r12
    test %rax, %rax
    cmovnz %rax, %rsp
    and $-16, %rsp
    cld
    call la_on_event
    test %r12, %r12
    jz 9f
    mov %r12, la_event_stack(%rip)
9:  mov %rbp, %rsp
    .ifnb \live
    test %eax, %eax
    jnz \live
    .endif
    la_pop
    jmp \resume
    .endm
    .macro la_pop
    pop %rax; pop %rcx; pop %rdx; pop %rbx; pop %rbp; pop %rsi; pop %rdi
    pop %r8; pop %r9; pop %r10; pop %r11; pop %r12; pop %r13; pop %r14; pop %r15
    .endm
    .globl la_slow
    .hidden la_slow
    .type la_slow, @function
la_slow:
    la_event *la_resume(%rip), la_left_as_mockup
    .irp n, 1, 2, 3, 4, 5, 6, 7
    .type la_slow_\n, @function
la_slow_\n:
    la_event *la_resume+8*\n(%rip), la_left_as_mockup, \n
    .endr
/* The hotspot has run as a mock-up: the frame holds what it left. */
la_left_as_mockup:
    cmp $2, %eax
    je 2f
    la_pop
    popfq
    lea 128(%rsp), %rsp
    ret
2:  la_pop
    popfq
    lea 128(%rsp), %rsp
    jmp *la_live_target(%rip)

    .section .data.rel.ro, "aw"
    .balign 8
    .globl la_slow_further
    .hidden la_slow_further
    .type la_slow_further, @object
la_slow_further:
    .irp n, 1, 2, 3, 4, 5, 6, 7
    .quad la_slow_\n
    .endr
    .size la_slow_further, 56
    .text

/* A function on another stack, and back. */
    .globl la_live_on_stack
    .hidden la_live_on_stack
    .type la_live_on_stack, @function
la_live_on_stack:
    push %rbp
    mov %rsp, %rbp
    mov %rdi, %rsp
    and $-16, %rsp
    call *%rsi
    mov %rbp, %rsp
    pop %rbp
    ret

/* A watched loop was left through an exit: its number and the flags are pushed already. la_on_left puts the address to go
 * on at where the number stood. */
    .globl la_left
    .hidden la_left
    .type la_left, @function
la_left:
    push %r15; push %r14; push %r13; push %r12; push %r11; push %r10; push %r9; push %r8
    push %rdi; push %rsi; push %rbp; push %rbx; push %rdx; push %rcx; push %rax
    lea 120(%rsp), %rdi
    mov %rsp, %rbp
    and $-16, %rsp
    cld
    call la_on_left
    mov %rbp, %rsp
    pop %rax; pop %rcx; pop %rdx; pop %rbx; pop %rbp; pop %rsi; pop %rdi
    pop %r8; pop %r9; pop %r10; pop %r11; pop %r12; pop %r13; pop %r14; pop %r15
    ret

/* A function that does nothing, as if patched: what its timed calls take is the timing's own. */
    .globl la_empty
    .hidden la_empty
    .type la_empty, @function
la_empty:
    lea -128(%rsp), %rsp
    pushfq
    la_event 1f
1:  popfq
    lea 128(%rsp), %rsp
    ret

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
    mov 112(%r15), %rcx
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
    .globl la_capture
    .hidden la_capture
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
    mov 112(%r15), %rcx
    mov 40(%r15), %rax
    mov %rax, (%rcx)
    la_leave

/* Before a call of the batch, recorded at rbx: the words of the stack that are its own. */
    .macro la_stack_words
    mov la_batch+56(%rip), %rsi
    test %rsi, %rsi
    jz 3f
    mov la_batch+64(%rip), %rdi
    mov 32(%rbx), %rcx
2:  mov -8(%rdi,%rsi,8), %rdx
    mov 248(%rbx,%rdx), %rax
    mov %rax, (%rcx,%rdx)
    dec %rsi
    jnz 2b
3:
    .endm

/* After a call of the batch: what the program writes before the next one. */
    .macro la_put_back
    mov la_batch+88(%rip), %rdi
    test %rdi, %rdi
    jz 7f
    mov (%rdi), %rcx
    add $8, %rdi
    mov %rdi, la_batch+88(%rip)
    test %rcx, %rcx
    jz 7f
    mov la_batch+80(%rip), %rsi
6:  mov (%rsi), %rdi
    mov 8(%rsi), %rax
    and (%rdi), %rax
    or 16(%rsi), %rax
    mov %rax, (%rdi)
    add $24, %rsi
    dec %rcx
    jnz 6b
    mov %rsi, la_batch+80(%rip)
7:
    .endm

/* Where calls are to be apart: what is before has ended. */
    .macro la_apart
    cmpq $0, la_batch+112(%rip)
    je 8f
    lfence
8:
    .endm

/* A call that does nothing. */
    .globl la_nothing
    .hidden la_nothing
    .type la_nothing, @function
la_nothing:
    ret

/* The original, once for each of la_batch.left recorded calls from la_batch.at on. All are entered with the same rsp; the
 * call instruction puts the return address where the program's own stood. */
    .globl la_replay_batch
    .hidden la_replay_batch
    .type la_replay_batch, @function
la_replay_batch:
    la_enter
    mov la_batch+24(%rip), %rbx
    mov 32(%rbx), %rcx
    mov (%rcx), %rax
    mov %rax, 40(%r15)
    cld
    la_stamp 64
1:  mov la_batch+24(%rip), %rbx
    la_stack_words
    movups 128(%rbx), %xmm0
    movups 144(%rbx), %xmm1
    movups 160(%rbx), %xmm2
    movups 176(%rbx), %xmm3
    movups 192(%rbx), %xmm4
    movups 208(%rbx), %xmm5
    movups 224(%rbx), %xmm6
    movups 240(%rbx), %xmm7
    cmpq $0, la_batch+72(%rip)
    je 4f
    .irp n, 0, 1, 2, 3, 4, 5, 6, 7
    vinsertf128 $1, 768+16*\n(%rbx), %ymm\n, %ymm\n
    .endr
4:  mov 0(%rbx), %rax
    mov 8(%rbx), %rcx
    mov 16(%rbx), %rdx
    mov 32(%rbx), %rsp
    lea 8(%rsp), %rsp
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
    la_apart
    call *la_replay_state+24(%rip)
    la_apart
    mov la_batch+32(%rip), %rcx
    mov %rax, 0(%rcx)
    mov %rdx, 8(%rcx)
    movups %xmm0, 16(%rcx)
    movups %xmm1, 32(%rcx)
    add $48, %rcx
    mov %rcx, la_batch+32(%rip)
    addq $896, la_batch+24(%rip)
    la_put_back
    decq la_batch+40(%rip)
    jnz 1b
    cld
    lea la_replay_state(%rip), %r15
    lea -8(%rsp), %rcx
    mov 40(%r15), %rax
    mov %rax, (%rcx)
    mov 32(%r15), %rsp
    la_stamp 72
    la_leave

/* The mock-up la_batch.run, once for each of la_batch.count recorded calls; called through la_replay_mockup. */
    .globl la_mockup_batch
    .hidden la_mockup_batch
    .type la_mockup_batch, @function
la_mockup_batch:
    push %rbx; push %rbp; push %r12; push %r13; push %r14
    mov %rdi, %r12
    mov la_batch(%rip), %rbx
    mov la_batch+8(%rip), %rbp
    mov la_batch+16(%rip), %r13
    mov la_batch+48(%rip), %r14
1:  la_stack_words
    mov la_batch+96(%rip), %rax
    mov %rax, 8584(%r12)
    add la_batch+104(%rip), %rax
    mov %rax, la_batch+96(%rip)
    .irp n, 0, 1, 2, 3, 4, 5, 6, 7
    movups 16*\n(%rbx), %xmm0
    movups %xmm0, 8+16*\n(%r12)
    .endr
    .irp n, 0, 1, 2, 3, 4, 5, 6, 7
    movups 128+16*\n(%rbx), %xmm0
    movups %xmm0, 168+64*\n(%r12)
    .endr
    cmpq $0, la_batch+72(%rip)
    je 4f
    .irp n, 0, 1, 2, 3, 4, 5, 6, 7
    movups 768+16*\n(%rbx), %xmm0
    movups %xmm0, 184+64*\n(%r12)
    .endr
4:  mov %r12, %rdi
    la_apart
    call *%r14
    la_apart
    mov 2216(%r12), %rax
    mov %rax, 0(%rbp)
    mov 2232(%r12), %rax
    mov %rax, 8(%rbp)
    movups 2376(%r12), %xmm0
    movups %xmm0, 16(%rbp)
    movups 2440(%r12), %xmm0
    movups %xmm0, 32(%rbp)
    add $896, %rbx
    add $48, %rbp
    la_put_back
    dec %r13
    jnz 1b
    pop %r14; pop %r13; pop %r12; pop %rbp; pop %rbx
    ret

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

/* What the team's threads enter instead of the outlined function: with all arguments on to where the C function says, which
 * is handed the address of the return address and that of rdi, rsi, rdx, rcx, r8, r9. */
    .macro la_member_asks function
    push %r9; push %r8; push %rcx; push %rdx; push %rsi; push %rdi
    lea 48(%rsp), %rdi
    mov %rsp, %rsi
    sub $8, %rsp
    call \function
    add $8, %rsp
    pop %rdi; pop %rsi; pop %rdx; pop %rcx; pop %r8; pop %r9
    jmp *%rax
    .endm
    .globl la_team_enter
    .hidden la_team_enter
    .type la_team_enter, @function
la_team_enter:
    la_member_asks la_team_target
    .globl la_timed_enter
    .hidden la_timed_enter
    .type la_timed_enter, @function
la_timed_enter:
    la_member_asks la_timed_target

/* A member that is timed returns here; la_timed_return gives back the true return address. */
    .globl la_timed_leave
    .hidden la_timed_leave
    .type la_timed_leave, @function
la_timed_leave:
    sub $16, %rsp
    call la_timed_return
    mov %rax, 8(%rsp)
    add $8, %rsp
    ret

/* One thread's part of a mock-up. Where the original's frame was, the mock-up's variables that stay memory are: its own stack
 * begins 64 KiB below that. */
    .globl la_member_enter
    .hidden la_member_enter
    .type la_member_enter, @function
la_member_enter:
    mov %rsp, %rax
    sub $65544, %rsp
    push %r9; push %r8; push %rcx; push %rdx; push %rsi; push %rdi
    mov %rsp, %rdi
    mov %rax, %rsi
    call la_member_runs
    add $65592, %rsp
    ret

    .section .note.GNU-stack, "", @progbits
