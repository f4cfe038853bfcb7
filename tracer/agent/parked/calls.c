/* Short calls, many at a time: recording the registers of consecutive calls while the program runs, and replaying them.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "agent.h"
#include <cpuid.h>
#include <stddef.h>

struct la_batch la_batch;

/* The offsets that entry.S uses. */
_Static_assert(offsetof(struct la_context, in) == 8 && offsetof(struct la_context, out) == 2216, "abi.h");
_Static_assert(offsetof(struct la_registers, vector) == 160, "abi.h");
_Static_assert(offsetof(struct la_recorded, upper) == 768 && offsetof(struct la_batch, upper) == 72, "agent.h");
_Static_assert(offsetof(struct la_batch, put) == 80 && sizeof(struct la_put) == 24, "agent.h");
_Static_assert(offsetof(struct la_batch, apart) == 112, "agent.h");
_Static_assert(sizeof(struct la_recorded) == 896 && offsetof(struct la_recorded, stack) == 256 && sizeof(struct la_returned) == 48, "agent.h");

/* The table stands behind the status pages near the hotspot, so that the program's own mappings lie as in other runs. */
static struct la_recorded *table(void) { return (struct la_recorded *)(la_near + la_near_bytes - la_calls_bytes()); }

uint64_t la_calls_bytes(void)
{
    return la_config.mode == LA_MODE_RECORD ? la_up(la_config.timed * sizeof(struct la_recorded), LA_PAGE) : 0;
}

/* Processor and kernel keep the upper halves of the vector registers (Intel's manual 1, 14.3). */
static int has_upper_halves(void)
{
    static int known = -1;
    uint32_t a, b, c, d, lo, hi;
    if (known < 0) {
        known = __get_cpuid(1, &a, &b, &c, &d) && (c >> 27 & 3) == 3; /* OSXSAVE, AVX */
        if (known) {
            __asm__ volatile("xgetbv" : "=a"(lo), "=d"(hi) : "c"(0));
            known = (lo & 6) == 6;
        }
    }
    return known;
}

/* Runs with the program's vector registers live: they are stored, nothing else touches them. */
void la_record_event(const struct la_frame *f)
{
    uint64_t n = la_status->timed;
    if (n >= la_config.timed)
        return;
    struct la_recorded *r = table() + n;
    const uint64_t gpr[16] = {f->rax, f->rcx, f->rdx, f->rbx, LA_FRAME_RSP(f), f->rbp, f->rsi, f->rdi,
                              f->r8,  f->r9,  f->r10, f->r11, f->r12,          f->r13, f->r14, f->r15};
    la_copy(r->gpr, gpr, sizeof gpr);
    __asm__ volatile("movups %%xmm0, (%0); movups %%xmm1, 16(%0); movups %%xmm2, 32(%0); movups %%xmm3, 48(%0);"
                     "movups %%xmm4, 64(%0); movups %%xmm5, 80(%0); movups %%xmm6, 96(%0); movups %%xmm7, 112(%0)"
                     : : "r"(r->xmm) : "memory");
    if (has_upper_halves()) /* the table is zero where there are none */
        __asm__ volatile("vextractf128 $1, %%ymm0, (%0); vextractf128 $1, %%ymm1, 16(%0); vextractf128 $1, %%ymm2, 32(%0);"
                         "vextractf128 $1, %%ymm3, 48(%0); vextractf128 $1, %%ymm4, 64(%0); vextractf128 $1, %%ymm5, 80(%0);"
                         "vextractf128 $1, %%ymm6, 96(%0); vextractf128 $1, %%ymm7, 112(%0)"
                         : : "r"(r->upper) : "memory");
    /* by the kernel: the stack may end there */
    struct { uint64_t base, bytes; } to = {(uint64_t)r->stack, sizeof r->stack}, from = {gpr[4] + 8, sizeof r->stack};
    la_sys6(SYS_process_vm_readv, la_sys(SYS_getpid, 0, 0, 0), (long)&to, 1, (long)&from, 1, 0);
    la_between_note(n, gpr[4]);
    la_status->timed = n + 1;
    if (n + 1 == la_config.timed) {
        la_status->state = LA_STOPPED;
        la_libomp_forget();
        la_sys(SYS_exit_group, 0, 0, 0);
    }
}

/* Loading zeros there would make code without AVX slower on some processors: nothing is loaded where all are zero. */
static int any_upper_half(const struct la_recorded *calls, uint64_t count)
{
    for (uint64_t k = 0; k < count; k++)
        for (uint64_t n = 0; n < sizeof calls->upper; n++)
            if (calls[k].upper[n / 16][n % 16])
                return has_upper_halves();
    return 0;
}

/* Words: number of calls, then how far from rsp each word of the stack is that is put there before each call. Path: file of
 * recorded calls (none: from here on a call is one again). From here on a "call" of this process and of its copies is all of
 * them, in order, from the one rsp that they have, which may be below the parked call's. */
struct la_reply la_cmd_batch(const struct la_command *c)
{
    static uint64_t own_rsp; /* of the parked call */
    if (!own_rsp)
        own_rsp = la_parked.gpr[4];
    la_forget_puts();
    if (!c->word[0]) {
        la_batch.count = 0;
        la_parked.gpr[4] = own_rsp;
        const char *failed = la_enter_anew();
        return failed ? la_fail(failed) : la_answer(NULL, 0);
    }
    uint64_t count = c->word[0], bytes = la_up(count * sizeof(struct la_recorded), LA_PAGE);
    struct la_recorded *calls = la_memory(bytes);
    struct la_returned *returned = la_memory(la_up(count * sizeof *returned, LA_PAGE));
    uint64_t *word = la_memory(la_up(8 * c->words, LA_PAGE));
    int fd = la_open(la_command_path(c), O_RDONLY, 0);
    uint64_t got = 0;
    while (calls && fd >= 0 && got < count * sizeof *calls) {
        long n = la_sys(SYS_read, fd, (char *)calls + got, count * sizeof *calls - got);
        if (n <= 0)
            break;
        got += (uint64_t)n;
    }
    if (fd >= 0)
        la_close(fd);
    if (!calls || !returned || !word || got != count * sizeof *calls)
        return la_fail("cannot read the recorded calls");
    la_copy(word, c->word + 1, 8 * (c->words - 1));
    la_parked.gpr[4] = calls->gpr[4];
    if (calls->gpr[4] != own_rsp) /* the stack may not reach there yet; there is no return address to put back */
        *(volatile uint64_t *)calls->gpr[4] = 0;
    la_batch.words = c->words - 1;
    la_batch.word = word;
    la_batch.calls = calls;
    la_batch.returned = returned;
    la_batch.upper = (uint64_t)any_upper_half(calls, count);
    la_batch.count = count;
    const char *failed = la_enter_anew();
    return failed ? la_fail(failed) : la_answer(NULL, 0);
}
