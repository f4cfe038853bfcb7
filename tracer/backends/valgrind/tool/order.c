/* In which order the pieces ran, folded on the fly like the addresses, in the same bounds.
 *
 * What is folded are stretches of pieces: from where execution went backwards to where it does so the next time. An iteration
 * of a loop is one of them mostly, however many superblocks it goes through. A stretch is a number there that looks random,
 * lest some that happen to be evenly spaced look like a loop. What ran of a piece of which not all ran (lanes that a mask
 * leaves out, the last piece before the cap) is a piece of its own. As soon as the order turns out not to fold, no more is
 * done for it.
 * SPDX-License-Identifier: GPL-2.0-or-later */
#include "tool.h"

#define MOST_EVICTED (NLR_NODES / 4) /* a buffer may add some thousands before the next look */
#define MOST_VARIANTS 64u            /* of one piece */
#define MOST_STRETCHES (1u << 16)
#define LONGEST 256u                 /* pieces of a stretch */
#define RECENT 64u                   /* stretches that ended last */
#define SURE 16u
#define AT_ONCE 4096u                /* stretches that are folded between two looks */

enum order la_ordered = ORDERED;
struct nlr_stream la_order;
struct stretch *stretches;
UInt stretch_count;
static struct nlr_memory memory; /* no bytes for sets: an order that became one is no order */
static UInt at;                  /* what ran since execution went backwards */
static UInt *table;              /* stretches by parent and piece */
static UInt table_slots;
static uint64_t *kept, kept_count;
static uint64_t recent[RECENT], ended;
static UInt period, held; /* so many stretches in a row were those of a period before */
/* What is expected to end next, again and again; of it `place` stretches, and `turns` times all, are not in the stream yet. */
static uint64_t cycle[RECENT], turns;
static UInt cycle_length, place;

static void *take(void *owner, uint64_t bytes)
{
    (void)owner;
    return VG_(calloc)("la.order", 1, bytes);
}

static void give(void *owner, void *old, uint64_t bytes)
{
    (void)owner, (void)bytes;
    VG_(free)(old);
}

/* The finalizer of the generator splitmix64 (S. Vigna, public domain): one to one, and without any regularity. */
static ULong mixed(ULong x)
{
    x *= 0x9e3779b97f4a7c15ull;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ x >> 27) * 0x94d049bb133111ebull;
    return x ^ x >> 31;
}

static void stop(enum order why)
{
    if (la_ordered == ORDERED)
        nlr_close(&la_order);
    la_ordered = why;
}

static UInt *slot_of(UInt parent, UInt piece)
{
    UInt i = (UInt)mixed((ULong)parent << 32 | piece) & (table_slots - 1);
    while (table[i] && (stretches[table[i]].parent != parent || stretches[table[i]].piece != piece))
        i = (i + 1) & (table_slots - 1);
    return table + i;
}

static void grow(void)
{
    UInt room = stretch_count ? stretch_count * 2 : 1024;

    stretches = VG_(realloc)("la.stretches", stretches, room * sizeof *stretches);
    VG_(free)(table);
    table_slots = room * 2;
    table = VG_(calloc)("la.stretches", table_slots, sizeof *table);
    for (UInt i = 1; i < stretch_count; i++)
        *slot_of(stretches[i].parent, stretches[i].piece) = i;
}

/* `parent` and then `piece`. */
static UInt continued(UInt parent, UInt piece)
{
    struct stretch *s = stretches + parent;

    if (s->next && s->next_piece == piece)
        return s->next;
    UInt *slot = slot_of(parent, piece);
    if (!*slot) {
        if (stretch_count == MOST_STRETCHES) {
            stop(VARIED);
            return 0;
        }
        if (stretch_count * 2 == table_slots) {
            grow();
            s = stretches + parent;
            slot = slot_of(parent, piece);
        }
        stretches[stretch_count] =
            (struct stretch){.parent = parent, .piece = piece, .length = s->length + 1, .name = mixed(stretch_count + 1)};
        *slot = stretch_count++;
    }
    s->next_piece = piece;
    return s->next = *slot;
}

void la_order_open(void)
{
    memory = (struct nlr_memory){.take = take, .give = give, .left = 0};
    nlr_open(&la_order, &memory);
    grow();
    stretches[stretch_count++] = (struct stretch){.name = mixed(0)};
}

/* Before each buffer: does it fold so far? */
void la_order_look(void)
{
    if (la_ordered != ORDERED)
        return;
    if (la_order.state != NLR_FOLDING)
        stop(IRREGULAR);
    else if (la_order.evicted_nodes > MOST_EVICTED)
        stop(LONG);
}

static void add_turns(const uint64_t *names, UInt count, ULong rows)
{
    if (count == 1)
        nlr_add_run(&la_order, names[0], 0, rows);
    else
        nlr_add_cycle(&la_order, names, count, rows);
}

/* Nothing is expected any more. False: the order is not known any more either. */
static Bool leave_cycle(void)
{
    for (ULong rows, most = AT_ONCE / (cycle_length + 1); turns && la_ordered == ORDERED; turns -= rows) {
        rows = turns < most ? turns : most;
        add_turns(cycle, cycle_length, rows);
        la_order_look();
    }
    for (UInt i = 0; i < place && la_ordered == ORDERED; i++)
        nlr_add(&la_order, cycle[i]);
    turns = place = cycle_length = period = held = 0;
    return la_ordered == ORDERED;
}

/* Loops end the same stretches again and again; comparing costs less than folding. */
static void end_stretch(struct stretch *s)
{
    if (cycle_length) {
        if (s->name == cycle[place]) {
            if (++place == cycle_length) {
                place = 0;
                turns++;
            }
            return;
        }
        if (!leave_cycle())
            return;
    }
    nlr_add(&la_order, s->name);
    if (period && recent[(ended - period) % RECENT] == s->name) {
        held++;
    } else {
        period = s->seen && ended + 1 - s->seen < RECENT ? (UInt)(ended + 1 - s->seen) : 0;
        held = 0;
    }
    recent[ended % RECENT] = s->name;
    s->seen = ++ended;
    if (period && held >= 3 * period + SURE) {
        cycle_length = period;
        for (UInt i = 0; i < period; i++)
            cycle[i] = recent[(ended - period + i) % RECENT];
    }
}

void la_order_end(void)
{
    if (la_ordered == ORDERED) {
        if (at)
            end_stretch(stretches + at);
        if (leave_cycle())
            nlr_finish(&la_order);
    }
    la_order_look();
}

void la_order_piece(UInt piece)
{
    if (la_ordered != ORDERED)
        return;
    if (at && (pieces[piece].first <= pieces[stretches[at].piece].last || stretches[at].length == LONGEST)) {
        end_stretch(stretches + at);
        if (kept)
            kept[kept_count++] = stretches[at].name;
        at = 0;
    }
    at = continued(at, piece);
}

static Bool same_references(const struct piece *p, const struct access *chosen, UInt count)
{
    if (p->references != count)
        return False;
    for (UInt i = 0; i < count; i++)
        if (p->access[i].reference != chosen[i].reference)
            return False;
    return True;
}

/* Of one execution of the piece, the accesses that were made. */
void la_order_part(UInt piece, const struct access *chosen, UInt count)
{
    if (la_ordered != ORDERED || !count)
        return;
    for (UInt variants = 0; !same_references(pieces + piece, chosen, count); variants++) {
        if (variants == MOST_VARIANTS) {
            stop(VARIED);
            return;
        }
        if (!pieces[piece].variant) {
            UInt fresh = la_piece(chosen, count, 0);
            pieces[piece].variant = fresh;
        }
        piece = pieces[piece].variant;
    }
    la_order_piece(piece);
}

static void guarded_row(const ULong *word, ULong width)
{
    static struct access done[SLACK_WORDS];

    for (const ULong *end = word + width; word < end;) {
        const struct piece *p = pieces + *word;
        ULong words = p->words; /* la_order_part moves the pieces */
        UInt count = 0;
        for (UInt i = 0; i < p->references; i++)
            if (word[p->access[i].word] + p->access[i].delta)
                done[count++] = p->access[i];
        la_order_part((UInt)*word, done, count);
        word += words;
    }
}

/* `rows` times these pieces. When one time leaves the stretch under way as it was, so do all that follow, and they end the
 * same stretches. */
static void same_rows(const UInt *number, UInt count, ULong rows)
{
    static uint64_t names[SLACK_WORDS];

    while (rows && la_ordered == ORDERED) {
        UInt before = at;
        kept = names;
        kept_count = 0;
        for (UInt i = 0; i < count; i++)
            la_order_piece(number[i]);
        kept = NULL;
        rows--;
        if (at != before || la_ordered != ORDERED)
            continue;
        if (leave_cycle())
            add_turns(names, (UInt)kept_count, rows);
        return;
    }
}

/* `rows` times the pieces that the `width` words at `word` are. */
void la_order_rows(const ULong *word, ULong width, ULong rows)
{
    static UInt number[SLACK_WORDS];
    UInt count = 0, guarded = 0;

    if (la_ordered != ORDERED)
        return;
    for (ULong i = 0; i < width; i += pieces[word[i]].words) {
        number[count++] = (UInt)word[i];
        guarded |= pieces[word[i]].guarded;
    }
    if (!guarded)
        same_rows(number, count, rows);
    for (ULong k = 0; guarded && k < rows; k++)
        guarded_row(word + k * width, width);
}
