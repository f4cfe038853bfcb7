/* The lines that one run of a variant changes: noted once, put back before every timed call.
 * SPDX-License-Identifier: MIT */
#include "agent.h"
#include <cpuid.h>

#define BATCH 64u
struct span {
    uint64_t start, end; /* multiples of LA_LINE */
    uint64_t *saved;
};

static int has_clflushopt(void)
{
    static int known = -1;
    uint32_t a, b, c, d;
    if (known < 0)
        known = __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b >> 23 & 1);
    return known;
}

static void flush_lines(uint64_t start, uint64_t end)
{
    const int fast = has_clflushopt();
    for (uint64_t p = la_down(start, LA_LINE); p < end; p += LA_LINE)
        if (fast)
            __asm__ volatile("clflushopt (%0)" : : "r"(p) : "memory");
        else
            __asm__ volatile("clflush (%0)" : : "r"(p) : "memory");
}

static void fence(void)
{
    __asm__ volatile("mfence" : : : "memory");
}

/* Bytes of the unified cache of a level, 0 if the processor does not say. Intel and AMD describe caches alike, in different
 * leaves of cpuid (Intel's manual 2A, leaf 4; AMD's 3, Fn8000_001D). */
static uint64_t cache_bytes(uint32_t level)
{
    const uint32_t leaves[] = {4, 0x8000001d};
    uint32_t a, b, c, d;
    for (int l = 0; l < 2; l++)
        for (uint32_t k = 0; k < 16 && __get_cpuid_count(leaves[l], k, &a, &b, &c, &d) && (a & 31); k++)
            if ((a & 31) == 3 && (a >> 5 & 7) == level)
                return ((b >> 22) + 1ull) * ((b >> 12 & 1023) + 1) * ((b & 4095) + 1) * (c + 1ull);
    return 0;
}

/* Whether what is put back is flushed after it is read. Copies that fit into the second level would displace the program's data
 * there, and large ones such data in the last level. Between the two, in a last cache that is far larger, it is the flushing
 * that keeps the data out: 31 MB in 480 took 1.9 ms with it after 50 calls, 1.2 without it and with nothing put back. */
static int must_flush(uint64_t copies)
{
    static uint64_t second, last;
    if (!last) {
        second = cache_bytes(2);
        last = cache_bytes(3);
    }
    return copies <= second || copies > last / 16;
}

void la_flush(uint64_t start, uint64_t end)
{
    flush_lines(start, end);
    fence();
}

/* A forked process shares its pages: the copy must not happen inside a timed call. */
static void own_pages(uint64_t start, uint64_t end)
{
    start = la_down(start, LA_PAGE);
    la_madvise(start, la_up(end, LA_PAGE) - start, 23 /* MADV_POPULATE_WRITE */);
}

/* A changed line: its address, and in the highest byte which of its words. */
static uint64_t line_of(uint64_t entry)
{
    return entry & ~(0xffull << 56);
}

static unsigned words_of(uint64_t entry)
{
    return (unsigned)(entry >> 56);
}

/* Where the words of a line begin: of each BATCH lines it is noted, within them counted. */
static uint64_t first_word(const struct la_variant *v, uint64_t line)
{
    uint64_t at = v->batch_word[line / BATCH];
    for (uint64_t l = line / BATCH * BATCH; l < line; l++)
        at += (unsigned)__builtin_popcount(words_of(v->line_at[l]));
    return at;
}

/* As little as possible is read besides the program's own data (the changed words, not lines), and mostly flushed as soon as it
 * is read. A copy of whole lines, flushed when all were back, had driven the data out of the last cache: a call that writes
 * in each of 8 MB of lines took 250 us after that, and 160 us in the program itself. */
static void put_back(const struct la_variant *v, uint64_t first, uint64_t after)
{
    const uint64_t *from = v->word + (first < after ? first_word(v, first) : 0);
    for (uint64_t i = first; i < after;) {
        const uint64_t end = after - i < BATCH ? after : i + BATCH, begun = (uint64_t)from;
        const uint64_t entries = (uint64_t)(v->line_at + i);
        for (; i < end; i++) {
            volatile uint64_t *to = (volatile uint64_t *)line_of(v->line_at[i]);
            for (unsigned left = words_of(v->line_at[i]); left; left &= left - 1)
                to[__builtin_ctz(left)] = *from++;
        }
        if (!v->flushed)
            continue;
        flush_lines(begun, (uint64_t)from);
        flush_lines(entries, (uint64_t)(v->line_at + i));
    }
    fence();
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

void la_restore_lines(const struct la_variant *v)
{
    put_back_of = v;
    la_break_back();
    la_files_back();
    if (!la_is_team() || la_team_work(put_part_back))
        put_back(v, 0, v->lines);
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

static unsigned differing(const uint64_t *a, const uint64_t *b)
{
    unsigned words = 0;
    for (unsigned k = 0; k < 8; k++)
        words |= (unsigned)(a[k] != b[k]) << k;
    return words;
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

/* Notes the changed words and what they held; only as much of the room is touched as is needed. Returns their number. */
static uint64_t keep_changed(struct la_variant *v, const struct span *spans, uint64_t n)
{
    uint64_t words = 0;
    v->lines = 0;
    for (uint64_t i = 0; i < n; i++) {
        const uint64_t *old = spans[i].saved;
        for (uint64_t p = spans[i].start; p < spans[i].end; p += LA_LINE, old += 8) {
            const unsigned changed = differing((const uint64_t *)p, old);
            if (!changed)
                continue;
            if (v->lines % BATCH == 0)
                v->batch_word[v->lines / BATCH] = words;
            v->line_at[v->lines++] = p | (uint64_t)changed << 56;
            for (unsigned left = changed; left; left &= left - 1)
                v->word[words++] = old[__builtin_ctz(left)];
        }
        v->span_end[i] = v->lines;
    }
    return words;
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

static const char *note(struct la_variant *v, struct span *spans, uint64_t n)
{
    uint64_t bytes = LA_PAGE;
    for (uint64_t i = 0; i < n; i++)
        bytes += spans[i].end - spans[i].start;
    bytes = la_up(bytes, LA_PAGE);
    const uint64_t places = la_up(bytes / 8, LA_PAGE), batches = la_up(bytes / (8 * BATCH) + 8, LA_PAGE);
    uint64_t *saved = save_copy(bytes);
    v->line_at = room_for_copies(places);
    v->word = room_for_copies(bytes);
    v->batch_word = la_memory(batches);
    v->span_end = la_memory(la_up(8 * n + 8, LA_PAGE));
    v->spans = n;
    if (!saved || !v->line_at || !v->word || !v->batch_word || !v->span_end)
        return "no memory to save the written ranges";
    save(spans, n, saved);
    la_call(v);
    la_break_back();
    const uint64_t words = keep_changed(v, spans, n);
    release(v->word, 8 * words + 1, bytes);
    release(v->line_at, 8 * v->lines + 1, places);
    v->flushed = must_flush(8 * (words + v->lines));
    la_restore_lines(v);
    return NULL;
}

/* What the original changes, for a variant that is known to change the same: that is not found out again. */
const char *la_share_lines(struct la_variant *v)
{
    const struct la_variant *known = &la_variants[0];
    if (!known->line_at || (v->context && v->context->buffer_count))
        return "the original is not prepared, or the variant has another layout";
    v->lines = known->lines;
    v->line_at = known->line_at;
    v->word = known->word;
    v->batch_word = known->batch_word;
    v->spans = known->spans;
    v->span_end = known->span_end;
    v->flushed = known->flushed;
    la_call(v); /* the first is slower */
    la_restore_lines(v);
    return NULL;
}

const char *la_note_lines(struct la_variant *v, const uint64_t *written, uint64_t n)
{
    uint64_t bytes = la_up((n + LA_MAX_BUFFERS) * sizeof(struct span), LA_PAGE);
    struct span *spans = la_memory(bytes);
    if (!spans)
        return "no memory for the ranges";
    const char *failed = note(v, spans, collect(v, written, n, spans));
    la_munmap(spans, bytes);
    return failed;
}
