/* Counting and timing calls of the hotspot while the program runs. All code here runs with the program's vector
 * registers live: it is compiled with -mgeneral-regs-only and calls nothing that could touch them.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "agent.h"

#define LA_NEVER (1ll << 60)

/* One timed call at a time: of the first thread that came; nested calls are counted, not timed. */
static struct {
    volatile uint64_t slot; /* where its return address stands; 0: none open */
    uint64_t back, wall, cpu, tsc, faults, call, canary, between;
} open_call;
static uint64_t last_closed; /* wall; 0: none yet */
static uint64_t timer_thread;
static volatile uint64_t thread_seen[64];
static int calibrating;

static uint64_t thread_id(void)
{
    uint64_t id;
    __asm__("mov %%fs:0, %0" : "=r"(id)); /* the TCB points at itself */
    return id;
}

void la_probe_start(void)
{
    const uint64_t first = la_config.chunk ? (la_config.first - 1) * la_config.chunk + 1 : la_config.first;
    la_status->armed = la_status->counter = (int64_t)first;
    for (uint64_t i = 0; i < la_further_count; i++)
        la_status->further[i].armed = la_status->further[i].counter = (int64_t)la_further[i].first;
    la_status->start_wall = la_clock(CLOCK_MONOTONIC);
    la_status->start_tsc = la_tsc();
}

static void note_thread(uint64_t id)
{
    for (int i = 0; i < 64; i++) {
        if (thread_seen[i] == id)
            return;
        uint64_t nobody = 0;
        if (!thread_seen[i] && __atomic_compare_exchange_n(&thread_seen[i], &nobody, id, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
            __atomic_add_fetch(&la_status->threads, 1, __ATOMIC_SEQ_CST);
            return;
        }
        if (thread_seen[i] == id)
            return;
    }
}

static void calibrate(void);

/* What a tick takes, and what timing a call does. */
static void end_times(void)
{
    la_status->end_wall = la_clock(CLOCK_MONOTONIC);
    la_status->end_tsc = la_tsc();
    if (la_config.quick)
        calibrate();
}

static void stop_program(void)
{
    if (la_config.quick && la_status->timed && !la_status->end_tsc) /* of the calls some are made within others */
        end_times();
    la_status->state = LA_STOPPED;
    la_libomp_forget();
    la_sys(SYS_exit_group, 0, 0, 0);
}

/* Other threads may count between the two additions: calls = armed - counter stays right to within those. */
static void rearm(int64_t calls)
{
    __atomic_add_fetch(&la_status->armed, calls, __ATOMIC_SEQ_CST);
    __atomic_add_fetch(&la_status->counter, calls, __ATOMIC_SEQ_CST);
}

void la_never(void)
{
    if (la_status->counter <= 0)
        rearm(LA_NEVER);
}

void la_never_of(uint64_t region)
{
    struct la_entered *e = region ? &la_status->further[region - 1] : NULL;
    if (!e)
        la_never();
    else if (e->counter <= 0) {
        __atomic_add_fetch(&e->armed, LA_NEVER, __ATOMIC_SEQ_CST);
        __atomic_add_fetch(&e->counter, LA_NEVER, __ATOMIC_SEQ_CST);
    }
}

static void open_timing(uint64_t slot, uint64_t call)
{
    open_call.back = *(uint64_t *)slot;
    open_call.call = call;
    open_call.slot = slot;
    if (!la_config.exits)
        *(uint64_t *)slot = (uint64_t)la_return;
    open_call.canary = 0;
    if (!la_config.quick)
        open_call.between = last_closed ? la_clock(CLOCK_MONOTONIC) - last_closed : 0;
    if (!la_status->timed) /* once: while it waits, others use the caches */
        la_wait_calm(la_config.calm_ticks, 0, &la_config.calm_ns);
    if (!la_config.quick || !la_status->timed)
        open_call.canary = la_canary();
    if (!la_config.quick) {
        open_call.faults = la_minor_faults();
        open_call.cpu = la_clock(CLOCK_THREAD_CPUTIME_ID);
        open_call.wall = la_clock(CLOCK_MONOTONIC);
    }
    open_call.tsc = la_tsc();
}

static void close_timing(uint64_t tsc, uint64_t wall, uint64_t cpu);

/* What counting an iteration takes, in ps, where nothing else hides it. */
static uint64_t counting(void)
{
    enum { TIMES = 1 << 14, TRIES = 4 };
    uint64_t least = ~0ull;
    for (int k = 0; k < TRIES; k++) {
        int64_t left = TIMES;
        const uint64_t start = la_clock(CLOCK_MONOTONIC);
        __asm__ volatile("1: decq %0; jle 2f; jmp 3f; 3: jmp 1b; 2:" : "+m"(left) : : "cc");
        const uint64_t took = la_clock(CLOCK_MONOTONIC) - start;
        least = took < least ? took : least;
    }
    return least * 1000 / TIMES;
}

/* A chunk begins where the one before it ends, if that did not leave the loop. */
static uint64_t next_chunk(uint64_t slot)
{
    const uint64_t tsc = la_tsc(), wall = la_clock(CLOCK_MONOTONIC), cpu = la_clock(CLOCK_THREAD_CPUTIME_ID);
    const uint64_t passage = (uint64_t)(la_status->armed - la_status->counter);
    rearm((int64_t)la_config.chunk);
    if (open_call.slot == slot)
        close_timing(tsc, wall, cpu);
    if (!la_status->empty_tsc)
        la_status->empty_tsc = counting();
    return (passage - 1) / la_config.chunk + 1;
}

void la_probe_event(struct la_frame *frame)
{
    uint64_t slot = LA_FRAME_RSP(frame), thread = thread_id();
    uint64_t call = la_config.chunk && !calibrating ? next_chunk(slot) : (uint64_t)(la_status->armed - la_status->counter);
    if (calibrating) {
        open_timing(slot, call);
        return;
    }
    if (la_config.max_calls && call > la_config.max_calls)
        stop_program();
    note_thread(thread);
    if (la_status->timed >= la_config.timed || la_status->timed >= LA_MAX_TIMED) {
        if (la_status->counter <= 0)
            rearm(la_config.max_calls ? (int64_t)la_config.max_calls + 1 - la_status->armed : LA_NEVER);
        return;
    }
    if (!timer_thread) {
        uint64_t nobody = 0;
        __atomic_compare_exchange_n(&timer_thread, &nobody, thread, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    }
    if (timer_thread != thread)
        return;
    if (open_call.slot && la_goes_on(slot, open_call.slot)) {
        la_status->nested++;
        return;
    }
    open_timing(slot, call); /* a call left by longjmp is forgotten here: its slot is at or below this one */
}

/* What timing an empty call takes, once the code is warm. */
static void calibrate(void)
{
    enum { WARM = 16, CALLS = 64 };
    calibrating = 1;
    for (int i = 0; i < CALLS; i++) {
        if (i == WARM)
            la_status->empty_tsc = ~0ull;
        la_empty();
    }
    calibrating = 0;
}

/* where[0] is the number of the exit. A loop that was not entered by its entry, or is not timed, has no open call. */
void la_on_left(uint64_t *where) __attribute__((visibility("hidden")));
void la_on_left(uint64_t *where)
{
    uint64_t tsc = la_tsc(), wall = la_clock(CLOCK_MONOTONIC), cpu = la_clock(CLOCK_THREAD_CPUTIME_ID);
    uint64_t number = where[0];
    where[0] = la_exit_stub(number);
    if (la_config.mode == LA_MODE_LIVE) {
        if (la_alive())
            la_live_left(number / LA_EXIT_NUMBERS, tsc);
        return;
    }
    if (la_config.mode == LA_MODE_ORDER)
        la_order_note(number + 1);
    else if (open_call.slot && la_alive() && timer_thread == thread_id())
        close_timing(tsc, wall, cpu);
}

uint64_t la_on_return(uint64_t slot) __attribute__((visibility("hidden")));
uint64_t la_on_return(uint64_t slot)
{
    uint64_t tsc = la_tsc(), wall = 0, cpu = 0;
    if (la_config.mode == LA_MODE_LIVE)
        return la_live_return(slot, tsc);
    if (!la_config.quick) {
        wall = la_clock(CLOCK_MONOTONIC);
        cpu = la_clock(CLOCK_THREAD_CPUTIME_ID);
    }
    uint64_t back = open_call.back;
    if (!la_alive()) {
        open_call.slot = 0;
        return back;
    }
    if (calibrating) {
        open_call.slot = 0;
        la_status->empty_tsc = tsc - open_call.tsc < la_status->empty_tsc ? tsc - open_call.tsc : la_status->empty_tsc;
        return back;
    }
    close_timing(tsc, wall, cpu);
    return back;
}

static void close_timing(uint64_t tsc, uint64_t wall, uint64_t cpu)
{
    open_call.slot = 0;
    uint64_t n = la_status->timed, call = open_call.call;
    if (n < LA_MAX_TIMED) {
        struct la_sample *s = &la_status->sample[n];
        s->tsc = tsc - open_call.tsc;
        s->canary = open_call.canary;
        if (!la_config.quick) {
            s->wall = wall - open_call.wall;
            s->cpu = cpu - open_call.cpu;
            s->faults = la_minor_faults() - open_call.faults;
            s->between = open_call.between;
        }
        if (!la_config.quick || n + 1 == la_config.timed) { /* of quick calls before the first and after the last */
            uint64_t after = la_canary();
            s->canary = after > s->canary ? after : s->canary;
        }
        la_status->timed = n + 1;
        if (n + 1 == la_config.timed)
            end_times();
    }
    if (la_config.max_calls && call >= la_config.max_calls)
        stop_program();
    if (!la_config.quick)
        last_closed = la_clock(CLOCK_MONOTONIC);
}

/* The stub's slow path. */
static int parking;
/* How the program goes on: 0 with the hotspot; 1 after it, with a return; 2 where la_live_target says. */
int la_on_event(struct la_frame *frame, uint64_t region) __attribute__((visibility("hidden")));
int la_on_event(struct la_frame *frame, uint64_t region)
{
    if (!la_alive() || la_status->state != LA_PATCHED)
        return 0;
    if (la_config.mode == LA_MODE_LIVE)
        return la_live_event(frame, region);
    if (la_config.mode == LA_MODE_PROBE)
        la_probe_event(frame);
    else if (la_config.mode == LA_MODE_RECORD)
        la_record_event(frame);
    else if (la_config.mode == LA_MODE_ORDER)
        la_order_note(0);
    else if (!__atomic_exchange_n(&parking, 1, __ATOMIC_SEQ_CST)) /* of several threads the first */
        la_park(frame);
    return 0;
}
