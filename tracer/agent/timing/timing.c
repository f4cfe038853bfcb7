/* Timed calls. Before each, what one run changes is put back by ordinary stores, and the save copy is flushed as it is read
 * (lines.c): the program itself never has that copy in its caches, but it does have the data it just wrote.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "agent.h"
#include <time.h>

#define MAX_CALLS 4096
static struct {
    uint64_t left; /* ns of patience */
    struct la_sample samples[MAX_CALLS];
} answer;

/* What a cold call flushes: the ranges given and the variant's own buffers. */
static const char *note_ranges(struct la_variant *v, const uint64_t *range, uint64_t n)
{
    uint64_t buffers = v->context ? v->context->buffer_count : 0;
    v->range = la_memory(la_up(16 * (n + buffers) + 1, LA_PAGE));
    if (!v->range)
        return "no memory for the ranges";
    la_copy(v->range, range, 16 * n);
    for (uint64_t i = 0; i < buffers; i++) {
        v->range[2 * (n + i)] = (uint64_t)v->context->buffers[i];
        v->range[2 * (n + i) + 1] = (uint64_t)v->context->buffers[i] + v->spec[i].bytes;
    }
    v->ranges = n + buffers;
    return NULL;
}

/* Words: variant, whether it changes what the original changes (which is prepared already), number of written ranges, number of
 * original ranges, the written ones, the original ones. */
struct la_reply la_cmd_prepare(const struct la_command *c)
{
    struct la_variant *v = la_variant(c->word[0]);
    uint64_t written = c->word[2], original = c->word[3];
    if (!v)
        return la_fail("no such variant");
    if (v->line_at)
        return la_fail("this variant is prepared already");
    const char *failed = la_fill_buffers(v, 0);
    if (!failed)
        failed = note_ranges(v, c->word + 4 + 2 * written, original);
    if (!failed)
        failed = c->word[1] ? la_share_lines(v) : la_note_lines(v, c->word + 4, written);
    return failed ? la_fail(failed) : la_answer(&v->lines, sizeof v->lines);
}

static uint64_t member_canary[LA_MAX_TEAM];
static void take_canary(uint64_t number, uint64_t count)
{
    (void)count;
    if (number < LA_MAX_TEAM)
        member_canary[number] = la_canary();
}

/* Of the thread, or the slowest of the team's. That wakes the team, too: what comes before a call took the workers longer than
 * they wait awake, and to wake them is no part of a program that starts one region after another. */
static uint64_t canary(void)
{
    uint64_t slowest = 0;
    if (!la_is_team())
        return la_canary();
    for (uint64_t i = 0; i < LA_MAX_TEAM; i++)
        member_canary[i] = 0;
    if (la_team_work(take_canary))
        return 0;
    for (uint64_t i = 0; i < LA_MAX_TEAM; i++)
        slowest = member_canary[i] > slowest ? member_canary[i] : slowest;
    return slowest;
}

enum { PAIRS = 32 };

/* The ns of thread CPU time that timed_call reads of a call that takes none: what the clocks take, some 0.3 to 1 us. */
static uint64_t of_nothing(void)
{
    static uint64_t least;
    for (int k = 0; k < PAIRS && (k || !least); k++) {
        const uint64_t cpu = la_clock(CLOCK_THREAD_CPUTIME_ID);
        (void)la_clock(CLOCK_MONOTONIC);
        (void)la_clock(CLOCK_MONOTONIC);
        const uint64_t took = la_clock(CLOCK_THREAD_CPUTIME_ID) - cpu;
        least = !k || took < least ? took : least;
    }
    return least;
}

/* The ns of thread CPU time that a batch of calls that do nothing takes as this variant's are made. */
static uint64_t of_calls(struct la_variant *v)
{
    enum { TRIES = 3 };
    uint64_t least = ~0ull;
    for (int k = 0; k < TRIES; k++) {
        const uint64_t cpu = la_clock(CLOCK_THREAD_CPUTIME_ID);
        la_call_nothing(v);
        const uint64_t took = la_clock(CLOCK_THREAD_CPUTIME_ID) - cpu;
        least = took < least ? took : least;
    }
    return least;
}

/* converted: with the layout converted before the call and back after it, as a temporary one is. around: what is not the
 * call's own. */
static void timed_call(struct la_variant *v, int converted, uint64_t around, struct la_sample *s)
{
    const uint64_t nothing = around ? around : of_nothing(), before = canary();
    const int whose = la_is_team() ? 0 /* RUSAGE_SELF */ : 1 /* RUSAGE_THREAD */;
    uint64_t faults = la_faults_of(whose), cpu = la_clock(CLOCK_THREAD_CPUTIME_ID), wall = la_clock(CLOCK_MONOTONIC);
    if (converted)
        v->copy_in(v->context);
    la_call(v);
    if (converted)
        v->copy_out(v->context);
    s->wall = la_clock(CLOCK_MONOTONIC) - wall;
    s->cpu = la_clock(CLOCK_THREAD_CPUTIME_ID) - cpu;
    s->cpu -= s->cpu > nothing ? nothing : 0;
    s->faults = la_faults_of(whose) - faults;
    s->tsc = la_replay_state.tsc_end - la_replay_state.tsc_start;
    const uint64_t after = canary();
    s->canary = after > before ? after : before;
}

enum mode { STEADY, COLD /* with flushed caches */, FRESH /* with branches that are not known */, APART /* of a batch */ };

/* What a block of calls is to be. The words of the command, in this order. */
struct block {
    uint64_t variant, calls, mode, converted;
    uint64_t limit, memory_limit, patience; /* what la_wait_calm takes */
    uint64_t enough;                        /* calls with such canaries after which it ends; 0: it has all its calls */
    uint64_t memory;                        /* whether the memory's canary is taken */
    uint64_t most, wall;                    /* calls until they settle, by which clock; 0: it is not waited for that */
};

#define PIECE_NS 36000000ull
#define SETTLE_NS 150000000ull
static uint64_t spent(const struct block *b, const struct la_sample *s)
{
    return b->wall ? s->wall : s->cpu;
}

/* Whether the last calls took as long as those before them: the quickest of each at most 3 % less, or 10 % more, which others
 * do. Some 36 ms of calls are compared, 3 to 16; of quick ones half of what would be enough. */
static int settled(const struct block *b, uint64_t done)
{
    const struct la_sample *s = answer.samples;
    const uint64_t fit = PIECE_NS / (spent(b, s + done - 1) + 1), piece = fit < 3 ? 3 : fit > 16 ? 16 : fit;
    const uint64_t few = b->enough ? b->enough / 2 : piece;
    uint64_t last = ~0ull, before = ~0ull;
    if (done < 2 * few)
        return 0;
    for (uint64_t i = done - 2 * few; i < done; i++) {
        uint64_t *least = i < done - few ? &before : &last;
        *least = spent(b, s + i) < *least ? spent(b, s + i) : *least;
    }
    return 100 * last >= 97 * before && 10 * last <= 11 * before;
}

static int block_ends(const struct block *b, uint64_t done, uint64_t calm, uint64_t ns)
{
    if (done < b->calls && (!b->enough || calm < b->enough))
        return 0;
    return b->mode != STEADY || done >= b->most || ns >= SETTLE_NS || settled(b, done);
}

/* Answers what is left of the patience, and the times. What uses the memory waits before its first call only: while it waits,
 * others take the last cache. A call with conversions writes to the old layout what the original writes: then the original's
 * lines are put back before it. */
struct la_reply la_cmd_block(const struct la_command *c)
{
    const struct block *b = (const struct block *)c->word;
    struct la_variant *v = la_variant(b->variant), *writer = v;
    answer.left = b->patience;
    if (b->converted)
        writer = &la_variants[0];
    if (!v || !v->line_at || !writer->line_at)
        return la_fail("this variant is not prepared");
    if (b->converted && !v->context)
        return la_fail("the original has nothing to convert");
    if (b->calls > MAX_CALLS || b->most > MAX_CALLS)
        return la_fail("too many calls in one block");
    uint64_t done = 0, calm = 0, ns = 0;
    la_batch.apart = b->mode == APART && la_batch.count;
    const uint64_t around = la_batch.apart ? of_calls(v) : 0;
    while (!block_ends(b, done, calm, ns)) {
        struct la_sample *const s = &answer.samples[done++];
        if (done == 1 || !b->memory)
            la_wait_calm(b->limit, b->memory_limit, &answer.left);
        const uint64_t before = b->memory ? la_memory_canary() : 0;
        if (b->mode == FRESH)
            la_forget();
        la_restore_lines(writer);
        for (uint64_t k = 0; b->mode == COLD && k < v->ranges; k++)
            la_flush(v->range[2 * k], v->range[2 * k + 1]);
        timed_call(v, b->converted != 0, around, s);
        const uint64_t after = b->memory ? la_memory_canary() : 0;
        s->memory = after > before ? after : before;
        calm += s->canary <= b->limit && (!b->memory_limit || s->memory <= b->memory_limit);
        ns += spent(b, s);
    }
    la_batch.apart = 0;
    la_restore_lines(writer);
    if (b->converted)
        la_restore_lines(v); /* the next block may be another variant's, which reads what this one wrote */
    return la_answer(&answer, sizeof answer.left + done * sizeof answer.samples[0]);
}

/* Words: variant, times; answers (in, out) of each. Between blocks the old layout and the buffers both hold the state before the call, so that
 * copying to and fro changes nothing that is read; the buffers have been touched since they were prepared. */
struct la_reply la_cmd_convert(const struct la_command *c)
{
    enum { MAX_TIMES = 64 };
    static uint64_t times_of[2 * MAX_TIMES];
    struct la_variant *v = la_variant(c->word[0]);
    const uint64_t times = c->word[1];
    if (!v || !v->context || !v->line_at)
        return la_fail("this variant is not prepared, or it is the original");
    if (!times || times > MAX_TIMES)
        return la_fail("conversions are timed 1 to 64 times");
    for (uint64_t i = 0; i < times; i++) {
        uint64_t start = la_clock(CLOCK_THREAD_CPUTIME_ID);
        v->copy_in(v->context);
        uint64_t middle = la_clock(CLOCK_THREAD_CPUTIME_ID);
        v->copy_out(v->context);
        times_of[2 * i + 1] = la_clock(CLOCK_THREAD_CPUTIME_ID) - middle;
        times_of[2 * i] = middle - start;
    }
    if (la_variants[0].line_at) /* what is written only is not copied in: copying it out changed the old layout */
        la_restore_lines(&la_variants[0]);
    return la_answer(times_of, 16 * times);
}
