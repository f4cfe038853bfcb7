/* Timed calls. Before each, the lines that one run changes are put back by ordinary stores and the save copy is flushed:
 * the program itself never has that copy in its caches, but it does have the data it just wrote.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "agent.h"
#include <cpuid.h>
#include <time.h>

struct span {
    uint64_t start, end; /* multiples of LA_LINE */
    uint64_t *saved;
};
#define MAX_CALLS 4096
static struct la_sample samples[MAX_CALLS];

static int has_clflushopt(void)
{
    static int known = -1;
    uint32_t a, b, c, d;
    if (known < 0)
        known = __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b >> 23 & 1);
    return known;
}

static void flush(uint64_t start, uint64_t end)
{
    const int fast = has_clflushopt();
    for (uint64_t p = la_down(start, LA_LINE); p < end; p += LA_LINE)
        if (fast)
            __asm__ volatile("clflushopt (%0)" : : "r"(p) : "memory");
        else
            __asm__ volatile("clflush (%0)" : : "r"(p) : "memory");
    __asm__ volatile("mfence" : : : "memory");
}

/* A forked process shares its pages: the copy must not happen inside a timed call. */
static void own_pages(uint64_t start, uint64_t end)
{
    start = la_down(start, LA_PAGE);
    la_madvise(start, la_up(end, LA_PAGE) - start, 23 /* MADV_POPULATE_WRITE */);
}

static void put_back(const struct la_variant *v, uint64_t first, uint64_t after)
{
    const uint64_t *from = v->line_data + 8 * first;
    for (uint64_t i = first; i < after; i++, from += 8) {
        volatile uint64_t *to = (volatile uint64_t *)v->line_at[i];
        for (int k = 0; k < 8; k++)
            to[k] = from[k];
    }
}

/* Of each piece of memory an equal part for every thread of a team, in order, as a static schedule has it: the lines are
 * then in the caches of those that (mostly) wrote them. */
static const struct la_variant *put_back_of;
static void put_part_back(uint64_t number, uint64_t count)
{
    uint64_t start = 0;
    for (uint64_t s = 0; s < put_back_of->spans; s++) {
        uint64_t end = put_back_of->span_end[s], lines = end - start;
        put_back(put_back_of, start + lines * number / count, start + lines * (number + 1) / count);
        start = end;
    }
}

static void restore_lines(const struct la_variant *v)
{
    put_back_of = v;
    if (!la_is_team() || la_team_work(put_part_back))
        put_back(v, 0, v->lines);
    flush((uint64_t)v->line_data, (uint64_t)(v->line_data + 8 * v->lines));
    flush((uint64_t)v->line_at, (uint64_t)(v->line_at + v->lines));
}

/* Spans sorted and merged, so that no line is saved twice. */
static uint64_t merge(struct span *s, uint64_t n)
{
    for (uint64_t i = 1; i < n; i++)
        for (uint64_t j = i; j > 0 && s[j].start < s[j - 1].start; j--) {
            struct span t = s[j];
            s[j] = s[j - 1];
            s[j - 1] = t;
        }
    uint64_t kept = 0;
    for (uint64_t i = 0; i < n; i++) {
        if (s[i].start == s[i].end)
            continue;
        if (kept && s[i].start <= s[kept - 1].end) {
            if (s[i].end > s[kept - 1].end)
                s[kept - 1].end = s[i].end;
        } else {
            s[kept++] = s[i];
        }
    }
    return kept;
}

static uint64_t collect(const struct la_variant *v, const uint64_t *range, uint64_t n, struct span *spans)
{
    uint64_t count = 0;
    for (uint64_t i = 0; i < n; i++)
        spans[count++] = (struct span){la_down(range[2 * i], LA_LINE), la_up(range[2 * i + 1], LA_LINE), NULL};
    for (uint32_t i = 0; v->context && i < v->context->buffer_count; i++) {
        uint64_t at = (uint64_t)v->context->buffers[i];
        spans[count++] = (struct span){la_down(at, LA_LINE), la_up(at + v->spec[i].bytes, LA_LINE), NULL};
    }
    return merge(spans, count);
}

static int differs(const uint64_t *a, const uint64_t *b)
{
    uint64_t d = 0;
    for (int k = 0; k < 8; k++)
        d |= a[k] ^ b[k];
    return d != 0;
}

/* Memory for copies: in huge pages where there are any, since the faults would cost more than the copying. */
static void *room_for_copies(uint64_t bytes)
{
    void *p = la_memory(bytes);
    if (p)
        la_madvise((uint64_t)p, bytes, MADV_HUGEPAGE);
    return p;
}

static void release(void *p, uint64_t used, uint64_t bytes)
{
    used = la_up(used, LA_PAGE);
    if (used < bytes)
        la_munmap((uint8_t *)p + used, bytes - used);
}

static void save(struct span *spans, uint64_t n, uint64_t *to)
{
    for (uint64_t i = 0; i < n; i++) {
        uint64_t bytes = spans[i].end - spans[i].start;
        own_pages(spans[i].start, spans[i].end);
        spans[i].saved = to;
        la_copy(to, (void *)spans[i].start, bytes);
        to += bytes / 8;
    }
}

/* Notes the changed lines and what they held; only as much of the room is touched as is needed. */
static uint64_t keep_changed(const struct span *spans, uint64_t n, uint64_t *at, uint64_t *data, uint64_t *ends)
{
    uint64_t count = 0;
    for (uint64_t i = 0; i < n; i++) {
        const uint64_t *old = spans[i].saved;
        for (uint64_t p = spans[i].start; p < spans[i].end; p += LA_LINE, old += 8) {
            if (!differs((const uint64_t *)p, old))
                continue;
            at[count] = p;
            for (int k = 0; k < 8; k++)
                data[8 * count + (uint64_t)k] = old[k];
            count++;
        }
        ends[i] = count;
    }
    return count;
}

/* One save copy serves all variants of a process: touching fresh memory costs more than copying to it. */
static uint64_t *save_copy(uint64_t bytes)
{
    static uint64_t *copy, room;
    if (room < bytes) {
        if (copy)
            la_munmap(copy, room);
        copy = room_for_copies(bytes);
        room = copy ? bytes : 0;
    }
    return copy;
}

static const char *note_lines(struct la_variant *v, struct span *spans, uint64_t n)
{
    uint64_t bytes = LA_PAGE;
    for (uint64_t i = 0; i < n; i++)
        bytes += spans[i].end - spans[i].start;
    bytes = la_up(bytes, LA_PAGE);
    const uint64_t places = la_up(bytes / 8, LA_PAGE);
    uint64_t *saved = save_copy(bytes);
    v->line_at = room_for_copies(places);
    v->line_data = room_for_copies(bytes);
    v->span_end = la_memory(la_up(8 * n + 8, LA_PAGE));
    v->spans = n;
    if (!saved || !v->line_at || !v->line_data || !v->span_end)
        return "no memory to save the written ranges";
    save(spans, n, saved);
    la_call(v);
    v->lines = keep_changed(spans, n, v->line_at, v->line_data, v->span_end);
    release(v->line_data, 64 * v->lines + 1, bytes);
    release(v->line_at, 8 * v->lines + 1, places);
    restore_lines(v);
    return NULL;
}

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

/* Words: variant, number of written ranges, number of original ranges, the written ones, the original ones. */
struct la_reply la_cmd_prepare(const struct la_command *c)
{
    struct la_variant *v = la_variant(c->word[0]);
    uint64_t written = c->word[1], original = c->word[2];
    if (!v)
        return la_fail("no such variant");
    if (v->line_at)
        return la_fail("this variant is prepared already");
    const char *failed = la_fill_buffers(v, 0);
    if (!failed)
        failed = note_ranges(v, c->word + 3 + 2 * written, original);
    uint64_t bytes = la_up((written + LA_MAX_BUFFERS) * sizeof(struct span), LA_PAGE);
    struct span *spans = failed ? NULL : la_memory(bytes);
    if (!failed && !spans)
        failed = "no memory for the ranges";
    if (!failed)
        failed = note_lines(v, spans, collect(v, c->word + 3, written, spans));
    if (spans)
        la_munmap(spans, bytes);
    return failed ? la_fail(failed) : la_answer(&v->lines, sizeof v->lines);
}

static void nothing(uint64_t number, uint64_t count)
{
    (void)number;
    (void)count;
}

/* converted: with the layout converted before the call and back after it, as a temporary one is. */
static void timed_call(struct la_variant *v, int converted, struct la_sample *s)
{
    /* What comes before took the workers longer than they wait awake; to wake them is no part of a program that starts one
     * region after another. */
    if (la_is_team())
        la_team_work(nothing);
    const int whose = la_is_team() ? 0 /* RUSAGE_SELF */ : 1 /* RUSAGE_THREAD */;
    uint64_t faults = la_faults_of(whose), cpu = la_clock(CLOCK_THREAD_CPUTIME_ID), wall = la_clock(CLOCK_MONOTONIC);
    if (converted)
        v->copy_in(v->context);
    la_call(v);
    if (converted)
        v->copy_out(v->context);
    s->wall = la_clock(CLOCK_MONOTONIC) - wall;
    s->cpu = la_clock(CLOCK_THREAD_CPUTIME_ID) - cpu;
    s->faults = la_faults_of(whose) - faults;
    s->tsc = la_replay_state.tsc_end - la_replay_state.tsc_start;
}

/* Words: variant, calls, cold, converted. A call with conversions writes to the old layout what the original writes: then
 * the original's lines are put back before it. */
struct la_reply la_cmd_block(const struct la_command *c)
{
    struct la_variant *v = la_variant(c->word[0]), *writer = v;
    uint64_t calls = c->word[1];
    const int converted = c->word[3] != 0;
    if (converted)
        writer = &la_variants[0];
    if (!v || !v->line_at || !writer->line_at)
        return la_fail("this variant is not prepared");
    if (converted && !v->context)
        return la_fail("the original has nothing to convert");
    if (calls > MAX_CALLS)
        return la_fail("too many calls in one block");
    for (uint64_t i = 0; i < calls; i++) {
        restore_lines(writer);
        for (uint64_t k = 0; c->word[2] && k < v->ranges; k++)
            flush(v->range[2 * k], v->range[2 * k + 1]);
        timed_call(v, converted, &samples[i]);
    }
    restore_lines(writer);
    if (converted)
        restore_lines(v); /* the next block may be another variant's, which reads what this one wrote */
    return la_answer(samples, calls * sizeof *samples);
}

/* Words: variant, times; answers (in, out) of each. Between blocks the old layout and the buffers both hold the state before the call, so that
 * copying to and fro changes nothing that is read; the buffers have been touched since they were prepared. */
struct la_reply la_cmd_convert(const struct la_command *c)
{
    enum { MAX_TIMES = 64 };
    static uint64_t answer[2 * MAX_TIMES];
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
        answer[2 * i + 1] = la_clock(CLOCK_THREAD_CPUTIME_ID) - middle;
        answer[2 * i] = middle - start;
    }
    if (la_variants[0].line_at) /* what is written only is not copied in: copying it out changed the old layout */
        restore_lines(&la_variants[0]);
    return la_answer(answer, 16 * times);
}
