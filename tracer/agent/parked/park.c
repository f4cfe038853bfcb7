/* Call N has come: keep every register, leave the code pristine, go to sleep on the agent's own stack.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "agent.h"
#include <asm/prctl.h>
#include <cpuid.h>
#include <sys/prctl.h>

struct la_registers la_parked;
/* x87, SSE, AVX, opmask, ZMM in the standard format: 2.7 KB; room to spare. No AMX, no PKRU. */
#define LA_XSAVE_BYTES 4096
uint8_t la_parked_xsave[LA_XSAVE_BYTES] __attribute__((aligned(64)));
uint8_t la_after_xsave[LA_XSAVE_BYTES] __attribute__((aligned(64)));
uint64_t la_xsave_mask, la_parked_signals, la_parked_thread;
uint8_t *la_stack;
struct la_replay la_replay_state __attribute__((visibility("hidden")));

void la_save_vectors(uint8_t *area)
{
    uint32_t lo, hi;
    __asm__ volatile("xgetbv" : "=a"(lo), "=d"(hi) : "c"(0));
    (void)hi;
    la_xsave_mask = lo & 0xe7;
    __asm__ volatile("xsave64 (%0)" : : "r"(area), "a"((uint32_t)la_xsave_mask), "d"(0) : "memory");
}
void la_load_vectors(const uint8_t *area)
{
    __asm__ volatile("xrstor64 (%0)" : : "r"(area), "a"((uint32_t)la_xsave_mask), "d"(0) : "memory");
}

enum { HEADER = 512, SSE = 1, AVX, ZMM_HIGH = 6, HIGH_16 };
/* Where each component is in the standard format; 0: the processor or the kernel does not keep it. */
static const uint32_t *offsets(void)
{
    static uint32_t offset[8];
    uint32_t a, c, d;
    for (uint32_t i = AVX; i < 8 && !offset[SSE]; i++)
        if (la_xsave_mask >> i & 1)
            __cpuid_count(0xd, i, a, offset[i], c, d);
    offset[SSE] = 160;
    return offset;
}

/* Components in their initial state are written as zeros by plain XSAVE, so no look at XSTATE_BV is needed. */
void la_unpack_vectors(const uint8_t *xsave, struct la_registers *registers)
{
    const uint32_t *const offset = offsets();
    la_fill(registers->vector, 0, sizeof registers->vector);
    for (int n = 0; n < 16; n++) {
        la_copy(registers->vector[n], xsave + offset[SSE] + 16 * n, 16);
        if (offset[AVX])
            la_copy(registers->vector[n] + 16, xsave + offset[AVX] + 16 * n, 16);
        if (offset[ZMM_HIGH])
            la_copy(registers->vector[n] + 32, xsave + offset[ZMM_HIGH] + 32 * n, 32);
        if (offset[HIGH_16])
            la_copy(registers->vector[16 + n], xsave + offset[HIGH_16] + 64 * n, 64);
    }
    la_copy(&registers->mxcsr, xsave + 24, 4);
}

static int same(const uint8_t *a, const uint8_t *b, uint64_t n)
{
    uint64_t differ = 0;
    for (uint64_t i = 0; i < n; i += 8)
        differ |= *(const uint64_t *)(a + i) ^ *(const uint64_t *)(b + i);
    return !differ;
}

void la_pack_vectors(uint8_t *xsave, const struct la_registers *before, const struct la_registers *after)
{
    static const struct {
        uint8_t component, first, from, bytes;
    } part[] = {{SSE, 0, 0, 16}, {AVX, 0, 16, 16}, {ZMM_HIGH, 0, 32, 32}, {HIGH_16, 16, 0, 64}};
    const uint32_t *const offset = offsets();
    uint64_t changed = 0;
    for (int k = 0; k < 4; k++)
        for (int n = 0; n < 16 && offset[part[k].component]; n++) {
            const uint8_t *now = after->vector[part[k].first + n] + part[k].from;
            if (same(before->vector[part[k].first + n] + part[k].from, now, part[k].bytes))
                continue;
            la_copy(xsave + offset[part[k].component] + part[k].bytes * n, now, part[k].bytes);
            changed |= 1ull << part[k].component;
        }
    *(uint64_t *)(xsave + HEADER) |= changed; /* XSTATE_BV */
}

static void save_registers(const struct la_frame *f)
{
    const uint64_t gpr[16] = {f->rax, f->rcx, f->rdx, f->rbx, LA_FRAME_RSP(f), f->rbp, f->rsi, f->rdi,
                              f->r8,  f->r9,  f->r10, f->r11, f->r12,          f->r13, f->r14, f->r15};
    la_copy(la_parked.gpr, gpr, sizeof gpr);
    la_parked.rip = la_entry;
    la_parked.rflags = f->rflags;
    la_sys(SYS_arch_prctl, ARCH_GET_FS, &la_parked.fs_base, 0);
    la_unpack_vectors(la_parked_xsave, &la_parked);
}

/* The status pages were shared with a file of the run folder; a dump must not depend on it. */
static void make_private(void)
{
    uint64_t bytes = la_up(sizeof(struct la_status), LA_PAGE);
    struct la_status *copy = la_memory(bytes);
    if (copy)
        la_copy(copy, la_status, sizeof *copy);
    la_munmap(la_status, bytes);
    if (la_config.exits) { /* the loop's exits need a place near the code */
        la_mmap((void *)(la_near + LA_PAGE), la_near_bytes - LA_PAGE, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1);
    } else {
        la_munmap((void *)la_near, la_near_bytes);
        la_near = 0;
    }
    la_status = copy;
}

void la_park(struct la_frame *frame)
{
    la_save_vectors(la_parked_xsave); /* first: everything below may use vector registers */
    save_registers(frame);
    la_blocks_stop();
    la_clock_park();
    la_unpatch();
    la_revive();
    la_libomp_forget();
    /* The program's handlers must not run on the agent's stack, and a crash in a mock-up must not be handled by the
     * program: a blocked SIGSEGV that the CPU raises kills at once. */
    uint64_t all = ~0ull;
    la_sys6(SYS_rt_sigprocmask, 2 /* SIG_SETMASK */, (long)&all, (long)&la_parked_signals, 8, 0, 0);
    la_parked_thread = (uint64_t)la_sys(SYS_gettid, 0, 0, 0);
    la_break_park();
    la_files_park();
    uint64_t no_core[2] = {0, ~0ull};
    if (la_sys6(SYS_prlimit64, 0, 4 /* RLIMIT_CORE */, 0, (long)no_core, 0, 0) == 0) {
        no_core[0] = 0;
        la_sys6(SYS_prlimit64, 0, 4, (long)no_core, 0, 0, 0);
    }
    /* A restored process has another parent: from here on the loop looks for the controller's lock instead. */
    la_sys(SYS_prctl, PR_SET_PDEATHSIG, 0, 0);
    la_stack = la_memory(LA_STACK_BYTES + LA_PAGE);
    if (!la_stack) {
        la_error("no memory for the agent's stack");
        la_sys(SYS_exit_group, 137, 0, 0);
    }
    la_mprotect((uint64_t)la_stack, LA_PAGE, PROT_NONE); /* guard */
    la_status->state = LA_PARKED;
    make_private();
    la_catch_exits();
    la_on_stack(la_stack + LA_PAGE + LA_STACK_BYTES, la_loop);
}
