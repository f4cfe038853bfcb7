/* What the program writes between short calls, put back between the replayed ones: found out once from what was recorded
 * (between.c) and what the replayed calls themselves leave, then moved into each new layout by its own map.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "agent.h"

enum { WORDS = LA_PAGE / 8 };
static struct la_puts known; /* of the old layout; count is NULL where there are none */
static uint64_t known_calls, known_puts;

void la_forget_puts(void)
{
    known.count = NULL;
    known_calls = known_puts = 0;
}

/* NULL is the original, or a clone of it. */
void la_rewind_puts(const struct la_variant *v)
{
    const struct la_puts *puts = v && v->puts.count ? &v->puts : &known;
    la_batch.puts = puts->count;
    la_batch.put = puts->put;
}

/* Words: start, end pairs of whole pages. They become memory that can be written, also where it is there and cannot. */
struct la_reply la_cmd_map(const struct la_command *c)
{
    for (uint64_t i = 0; i + 1 < c->words; i += 2) {
        const uint64_t at = c->word[i], bytes = c->word[i + 1] - at;
        void *got = la_mmap((void *)at, bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | 0x100000 /* MAP_FIXED_NOREPLACE */, -1);
        if (got && got != (void *)at)
            la_munmap(got, bytes);
        if (got != (void *)at && la_mprotect(at, bytes, PROT_READ | PROT_WRITE))
            return la_fail("memory that the program gets between the calls cannot be mapped");
    }
    return la_answer(NULL, 0);
}

static void apply(const struct la_put *put, uint64_t puts)
{
    for (; puts; puts--, put++)
        *(volatile uint64_t *)put->to = (*put->to & put->keep) | put->value;
}

/* By page: what it held at the last entry, as the program had it. */
enum { TABLE = 1 << 18 };
static struct entry {
    uint64_t page, *held;
} *entries;

static uint64_t *held_at(uint64_t page)
{
    uint64_t slot = page / LA_PAGE * 0x9e3779b97f4a7c15ull >> 46;
    while (entries[slot].page && entries[slot].page != page)
        slot = (slot + 1) % TABLE;
    if (!entries[slot].page) {
        entries[slot].page = page;
        entries[slot].held = la_memory(LA_PAGE);
        la_copy(entries[slot].held, (void *)page, LA_PAGE);
    }
    return entries[slot].held;
}

static unsigned words_in(const uint64_t *mask)
{
    unsigned words = 0;
    for (unsigned i = 0; i < WORDS / 64; i++)
        words += (unsigned)__builtin_popcountll(mask[i]);
    return words;
}

/* All pages that are in the records, as they are at the first entry. */
static int hold_pages(const uint64_t *record, uint64_t gaps)
{
    entries = la_memory(TABLE * sizeof *entries);
    for (; entries && gaps; gaps--, record++)
        for (; *record != LA_BETWEEN_END; record += 1 + WORDS / 64 + words_in(record + 1))
            if (!held_at(*record & ~(LA_PAGE - 1)))
                return 0;
    return entries != NULL;
}

/* The records of one gap: what is not in memory already is put there, and noted. */
static const uint64_t *settle_gap(const uint64_t *record, struct la_put **put, const struct la_put *end)
{
    for (; *record != LA_BETWEEN_END;) {
        uint64_t *const page = (uint64_t *)(*record & ~(LA_PAGE - 1)), *const held = held_at((uint64_t)page);
        const int part = (*record & LA_BETWEEN_PART) != 0;
        const uint64_t *const mask = record + 1;
        record += 1 + WORDS / 64;
        for (uint64_t k = 0; k < WORDS; k++) {
            const int other = mask[k / 64] >> k % 64 & 1;
            if (other)
                held[k] = *record++;
            if (page[k] == held[k] || (part && !other))
                continue;
            if (*put == end)
                return NULL;
            *(*put)++ = (struct la_put){page + k, 0, held[k]};
            page[k] = held[k];
        }
    }
    return record + 1;
}

/* Word: how many puts there is room for. The file has the records of as many gaps as there are calls in the batch; it gets the
 * counts and the puts. This process is of no use afterwards. */
struct la_reply la_cmd_settle(const struct la_command *c)
{
    static uint64_t found;
    uint64_t room;
    const uint64_t calls = la_batch.count, most = c->word[0];
    const uint64_t *record = (const uint64_t *)la_read_file(la_command_path(c), &room);
    uint64_t *count = la_memory(la_up(8 * calls, LA_PAGE));
    struct la_put *puts = la_memory(la_up(most * sizeof *puts, LA_PAGE)), *put = puts;
    if (!record || !count || !puts || !calls || !hold_pages(record, calls))
        return la_fail("cannot read what was recorded between the calls");
    la_forget_puts();
    la_rewind_batch(NULL);
    la_replay_of(la_parked.rip);
    for (uint64_t k = 0; k < calls; k++) {
        const struct la_put *const begun = put;
        la_batch.left = 1;
        la_replay_batch();
        record = settle_gap(record, &put, puts + most);
        if (!record)
            return la_fail("the program writes too much between the calls");
        count[k] = (uint64_t)(put - begun);
    }
    found = (uint64_t)(put - puts);
    int fd = la_open(la_command_path(c), O_WRONLY | O_TRUNC, 0600);
    const int64_t failed = fd < 0 || la_write_all(fd, count, 8 * calls) || la_write_all(fd, puts, found * sizeof *puts);
    la_close(fd);
    return failed ? la_fail("cannot write what is put back between the calls") : la_answer(&found, sizeof found);
}

/* Words: number of calls (0: nothing is put back any more), number of puts. Path: counts and puts. */
struct la_reply la_cmd_put(const struct la_command *c)
{
    uint64_t room;
    la_forget_puts();
    if (!c->word[0])
        return la_answer(NULL, 0);
    char *text = la_read_file(la_command_path(c), &room);
    if (!text || c->word[0] != la_batch.count)
        return la_fail("cannot read what is put back between the calls");
    known_calls = c->word[0];
    known_puts = c->word[1];
    known = (struct la_puts){(uint64_t *)text, (struct la_put *)(text + 8 * known_calls)};
    return la_answer(NULL, 0);
}

/* The bytes of `put` by where they go: to `old` those that stay in the old layout, to `fresh` those that go to a buffer,
 * each run of them in one word of it. Returns the end of `fresh`. */
static struct la_put *translate(const struct la_variant *v, const struct la_put *put, struct la_put *fresh, struct la_put *moved)
{
    struct la_put *const first = fresh;
    const int whole = v->value && !put->keep; /* words are put whole */
    const uint64_t value = whole ? (uint64_t)v->value(v->context, (int64_t)put->to, (int64_t)put->value) : put->value;
    *moved = (struct la_put){put->to, ~0ull, 0};
    for (unsigned b = 0; b < 8; b++) {
        const uint64_t byte = 0xffull << 8 * b;
        if (put->keep & byte)
            continue;
        const uint64_t old = (uint64_t)put->to + b, place = (uint64_t)v->place(v->context, (int64_t)old);
        const uint64_t at = place ? place : old, shift = 8 * (at % 8);
        if (place) {
            moved->keep &= ~byte;
            moved->value |= put->value & byte;
        }
        if (place == LA_NOWHERE)
            continue;
        if (fresh == first || fresh[-1].to != (uint64_t *)(at - at % 8))
            *fresh++ = (struct la_put){(uint64_t *)(at - at % 8), ~0ull, 0};
        fresh[-1].keep &= ~(0xffull << shift);
        fresh[-1].value |= (value >> 8 * b & 0xff) << shift;
    }
    return fresh;
}

/* A list of its own, where all of it goes to the old layout, too: as cold in the caches as those of new layouts, when the
 * variants' turns come. */
static const char *copy_puts(struct la_variant *v)
{
    struct la_put *own = la_memory(la_up(known_puts * sizeof *own + 1, LA_PAGE));
    if (!own)
        return "no memory for what is put back between the calls";
    la_copy(own, known.put, known_puts * sizeof *own);
    v->puts = (struct la_puts){known.count, own};
    return NULL;
}

const char *la_translate_puts(struct la_variant *v)
{
    if (!known.count)
        return NULL;
    if (!v->context->buffer_count)
        return copy_puts(v);
    if (!v->place)
        return "the mock-up does not tell where the new layout has what the program writes between the calls";
    uint64_t *count = la_memory(la_up(8 * known_calls, LA_PAGE));
    struct la_put *fresh = la_memory(la_up(8 * known_puts * sizeof *fresh + 1, LA_PAGE)), *end = fresh;
    struct la_put *moved = la_memory(la_up((known_puts + 1) * sizeof *moved, LA_PAGE));
    if (!count || !fresh || !moved)
        return "no memory for what is put back between the calls";
    const struct la_put *put = known.put;
    for (uint64_t k = 0; k < known_calls; k++) {
        const struct la_put *const begun = end;
        for (uint64_t i = 0; i < known.count[k]; i++, put++) {
            end = translate(v, put, end, &moved[v->moves]);
            v->moves += moved[v->moves].keep != ~0ull;
        }
        count[k] = (uint64_t)(end - begun);
    }
    v->puts = (struct la_puts){count, fresh};
    v->moved = moved;
    return NULL;
}

/* After a run: the old layout gets what was put into the new one only, before what the calls wrote is copied out. */
void la_put_old(const struct la_variant *v)
{
    apply(v->moved, v->moves);
}

static uint64_t total(const struct la_puts *puts)
{
    uint64_t all = 0;
    for (uint64_t k = 0; k < known_calls; k++)
        all += puts->count[k];
    return all;
}

static uint64_t timed_puts(const struct la_puts *puts)
{
    const struct la_put *put = puts->put;
    const uint64_t begun = la_clock(CLOCK_MONOTONIC);
    for (uint64_t k = 0; k < known_calls; k++) {
        apply(put, puts->count[k]);
        put += puts->count[k];
    }
    return la_clock(CLOCK_MONOTONIC) - begun;
}

/* Word: variant. Answers the ns that putting back takes in one run, without any call: the least of a few times. What a prepared
 * variant had there before is put there again; it may be more than what a run changes. */
struct la_reply la_cmd_put_ns(const struct la_command *c)
{
    enum { TIMES = 7 };
    static uint64_t least;
    struct la_variant *v = la_variant(c->word[0]);
    if (!v)
        return la_fail("no such variant");
    const struct la_puts *puts = v->puts.count ? &v->puts : &known;
    least = 0;
    if (!puts->count)
        return la_answer(&least, sizeof least);
    const uint64_t all = total(puts), bytes = la_up(8 * all + 8, LA_PAGE);
    uint64_t *before = la_memory(bytes);
    if (!before)
        return la_fail("no memory for what is put back between the calls");
    for (uint64_t i = 0; i < all; i++)
        before[i] = *puts->put[i].to;
    least = timed_puts(puts);
    for (int i = 1; v->line_at && i < TIMES; i++) {
        const uint64_t ns = timed_puts(puts);
        least = ns < least ? ns : least;
    }
    for (uint64_t i = all; v->line_at && i-- > 0;)
        *(volatile uint64_t *)puts->put[i].to = before[i];
    la_munmap(before, bytes);
    return la_answer(&least, sizeof least);
}
