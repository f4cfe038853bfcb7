/* From the buffer into the folding code, many rows at a time.
 *
 * Loops leave the same pieces again and again. Where a sequence of at most PERIOD pieces repeats, each of its references is
 * a column of the buffer, which is folded as a whole. Where then all that an iteration of the loop around it leaves repeats,
 * its columns are rows of nests. Everything else goes piece by piece.
 * SPDX-License-Identifier: GPL-2.0-or-later */
#include "tool.h"

#define PERIOD 8u
#define FEWEST_ROWS 4u
#define TURNS 4u /* inner loops of an iteration of the loop around them */

static ULong stamp;
static Bool one_by_one; /* the cap may be reached in this buffer */

/* `rows` addresses of one reference, `step` words apart. */
static void column(const struct access *a, const ULong *word, ULong step, ULong rows)
{
    struct nlr_stream *s = &a->reference->stream;

    for (word += a->word; rows;) {
        if (s->run) {
            uint64_t expected = s->expected - a->delta, stride = s->stride;
            ULong before = rows;
            while (rows && *word == expected) {
                expected += stride;
                word += step;
                rows--;
            }
            s->expected = expected + a->delta;
            s->run += before - rows;
            if (!rows)
                return;
        }
        nlr_slow(s, *word + a->delta);
        word += step;
        rows--;
    }
}

static void uneven_columns(const ULong *word, ULong width, ULong rows)
{
    for (ULong at = 0; at < width;) {
        const struct piece *p = pieces + word[at];
        for (UInt i = 0; i < p->references; i++) {
            const struct access *a = p->access + i;
            if (a->reference->guarded) {
                for (ULong k = 0; k < rows; k++)
                    la_one(a->reference, word[at + a->word + k * width] + a->delta);
            } else {
                column(a, word + at, width, rows);
                taken += rows;
            }
        }
        at += p->words;
    }
}

typedef ULong two __attribute__((vector_size(16)));

static two two_at(const ULong *word)
{
    two value;
    __builtin_memcpy(&value, word, sizeof value);
    return value;
}

/* How many rows, from the first on, advance evenly: each word by what it advances from the first to the second. Where the
 * second row has the pieces of the first, all have them: their numbers are words too. */
static ULong even_rows(const ULong *word, ULong width, const ULong *end)
{
    static ULong step[SLACK_WORDS + 1];
    ULong rows = 2;

    if (word + 2 * width > end)
        return 1;
    for (ULong i = 0; i < width; i++)
        step[i] = word[width + i] - word[i];
    for (word += width; word + 2 * width <= end; word += width, rows++) {
        const ULong *next = word + width;
        ULong last = width - 1; /* all but the last word, or twice the one before it */
        two differ = (two_at(next + last - 1) - two_at(word + last - 1)) ^ two_at(step + last - 1);
        for (ULong i = 0; i < last; i += 2)
            differ |= (two_at(next + i) - two_at(word + i)) ^ two_at(step + i);
        if (differ[0] | differ[1])
            break;
    }
    return rows;
}

static void even_columns(const ULong *word, ULong width, ULong rows)
{
    const ULong *end = word + width;
    while (word < end) {
        const struct piece *p = pieces + *word;
        for (const struct access *a = p->access, *last = a + p->references; a < last; a++) {
            ULong address = word[a->word];
            nlr_add_run(&a->reference->stream, address + a->delta, word[width + a->word] - address, rows);
        }
        taken += rows * p->references;
        word += p->words;
    }
}

/* Does every reference occur once in the pattern? Else its column would not be its order. */
static Bool distinct(const ULong *word, ULong width)
{
    if (width == pieces[*word].words) /* one superblock has each of its instructions once */
        return True;
    stamp++;
    for (ULong at = 0; at < width;) {
        const struct piece *p = pieces + word[at];
        for (UInt i = 0; i < p->references; i++) {
            if (p->access[i].reference->stamp == stamp)
                return False;
            p->access[i].reference->stamp = stamp;
        }
        at += p->words;
    }
    return True;
}

/* Is the second row one of the same pieces? `*guarded`: some of their references may be left out. */
static Bool same_pieces(const ULong *word, ULong width, Bool *guarded)
{
    *guarded = False;
    for (ULong at = 0; at < width; at += pieces[word[at]].words) {
        *guarded |= pieces[word[at]].guarded != 0;
        if (word[at] != word[at + width])
            return False;
    }
    return True;
}

/* How often the pattern of `width` words at `word` stands there in a row. */
static ULong repeats(const ULong *word, ULong width, const ULong *end)
{
    ULong rows = 1;
    for (const ULong *next = word + width; next + width <= end; next += width, rows++)
        for (ULong at = 0; at < width; at += pieces[word[at]].words)
            if (next[at] != word[at])
                return rows;
    return rows;
}

/* Folds as many rows of the pattern as can be taken column by column: all, or none where they are few. */
static ULong columns(const ULong *word, ULong width, const ULong *end)
{
    Bool guarded;

    if (one_by_one || word + FEWEST_ROWS * width > end ||
        !same_pieces(word, width, &guarded) || !distinct(word, width))
        return 0;
    ULong rows = guarded ? 0 : even_rows(word, width, end);
    if (rows >= FEWEST_ROWS) {
        even_columns(word, width, rows);
        la_order_rows(word, width, rows);
        return rows;
    }
    rows = repeats(word, width, end);
    if (rows < FEWEST_ROWS)
        return 0;
    uneven_columns(word, width, rows);
    la_order_rows(word, width, rows);
    return rows;
}

/* The first piece from `word` on that stands there again within PERIOD pieces, and in `*again` where. `end` if there is none:
 * then `*again` is where the search ended. */
static const ULong *find_pattern(const ULong *word, const ULong *end, const ULong **again)
{
    const ULong *place[PERIOD];
    UInt count = 0;

    for (; word < end && count < PERIOD; word += pieces[*word].words) {
        for (UInt i = 0; i < count; i++)
            if (*place[i] == *word) {
                *again = word;
                return place[i];
            }
        place[count++] = word;
    }
    *again = word;
    return end;
}

/* In a pattern of `width` words: the places of each reference, if they are evenly spaced and advance alike from row to row.
 * Returns how many references there are, left in `seen`; 0 if one is not such. */
static UInt places(const ULong *word, ULong width, struct reference **seen)
{
    UInt count = 0;

    stamp++;
    for (const ULong *end = word + width; word < end;) {
        const struct piece *p = pieces + *word;
        for (UInt i = 0; i < p->references; i++) {
            struct reference *r = p->access[i].reference;
            ULong base = word[p->access[i].word], address = base + p->access[i].delta;
            ULong advance = word[width + p->access[i].word] - base;
            if (r->stamp != stamp) {
                if (count == SLACK_WORDS)
                    return 0;
                r->stamp = stamp;
                r->start = address;
                r->advance = advance;
                r->stride = 0;
                r->times = 0;
                seen[count++] = r;
            } else if (r->times == 1) {
                r->stride = address - r->start;
            }
            if (advance != r->advance || address != r->start + r->times++ * r->stride)
                return 0;
        }
        word += p->words;
    }
    return count;
}

/* What the iterations of an outer loop left, `width` words each, as far as they advance evenly. Returns their number: all are
 * folded, or none. */
static ULong turns(const ULong *word, ULong width, const ULong *end)
{
    static struct reference *seen[SLACK_WORDS];
    UInt count;
    ULong rows = even_rows(word, width, end);

    if (rows < FEWEST_ROWS || !(count = places(word, width, seen)))
        return 0;
    for (UInt i = 0; i < count; i++) {
        const struct reference *r = seen[i];
        nlr_add_rows(&seen[i]->stream, r->start, r->stride, r->times, r->advance, rows);
        taken += rows * r->times;
    }
    la_order_rows(word, width, rows);
    return rows;
}

/* The ends of the inner loops seen last, the newest first. */
struct ends {
    const ULong *at[TURNS];
    UInt count;
};

/* An inner loop has ended at `word`. If the words since the end of an earlier one repeat, they are an iteration of the loop around
 * both. Returns where the iterations that could be folded end. */
static const ULong *outer_loop(struct ends *ends, const ULong *word, const ULong *end)
{
    Bool guarded;

    for (UInt i = 0; i < ends->count; i++) {
        ULong width = (ULong)(word - ends->at[i]);
        if (width > SLACK_WORDS || word + FEWEST_ROWS * width > end)
            break;
        if (!same_pieces(ends->at[i], width, &guarded) || guarded || !same_pieces(word, width, &guarded))
            continue;
        ULong rows = turns(word, width, end);
        if (rows) {
            ends->count = 0;
            word += rows * width;
            break;
        }
    }
    for (UInt i = TURNS - 1; i > 0; i--)
        ends->at[i] = ends->at[i - 1];
    ends->at[0] = word;
    ends->count += ends->count < TURNS;
    return word;
}

Bool la_drain(void)
{
    const ULong *word = buffer, *end = (const ULong *)hot.next, *again;
    struct ends ends = {.count = 0};

    one_by_one = options.raw || taken + (ULong)(end - word) / 2 * most_references >= options.cap;
    hot.next = (Addr)buffer;
    la_order_look();
    while (word < end) {
        const ULong *first = find_pattern(word, end, &again);
        const ULong *rest = first < end ? first : again;
        for (; word < rest; word += pieces[*word].words)
            if (!la_row(word))
                return False;
        if (first == end)
            continue;
        ULong rows = columns(first, (ULong)(again - first), end);
        if (rows)
            word = outer_loop(&ends, word + rows * (ULong)(again - first), end);
        for (; word < again; word += pieces[*word].words)
            if (!la_row(word))
                return False;
    }
    return True;
}
