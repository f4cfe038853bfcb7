/* See nlr.h. SPDX-License-Identifier: MIT */
#include "nlr.h"

/* ---- sets ------------------------------------------------------------------------------------------------------- */

static uint64_t gcd(uint64_t a, uint64_t b)
{
    while (b) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static void lose_set(struct nlr_stream *s)
{
    nlr_set_drop(&s->set, s->memory);
    s->state = NLR_INEXACT;
}

/* Makes the set one of `low` to `high` in steps of `unit`, with `address` in it. 0: no room. */
static int widen_set(struct nlr_stream *s, uint64_t low, uint64_t high, uint64_t unit, uint64_t address)
{
    int fresh = s->set.unit == 0;
    int64_t place;

    if (!nlr_set_widen(&s->set, s->memory, s->minimum, low, high, unit))
        return 0;
    if (fresh && !nlr_set_put(&s->set, s->memory, 0)) /* the only address so far */
        return 0;
    nlr_set_place(&s->set, address, &place);
    return nlr_set_put(&s->set, s->memory, place);
}

static void set_add(struct nlr_stream *s, uint64_t address)
{
    uint64_t unit, low, high;
    int64_t place;

    s->count++;
    if (s->set.unit && address >= s->minimum && address <= s->maximum && nlr_set_place(&s->set, address, &place)) {
        if (!nlr_set_put(&s->set, s->memory, place))
            lose_set(s);
        return;
    }
    if (s->count == 1) {
        s->minimum = s->maximum = address;
        s->unit = 0;
    }
    low = address < s->minimum ? address : s->minimum;
    high = address > s->maximum ? address : s->maximum;
    unit = gcd(s->unit, address > s->minimum ? address - s->minimum : s->minimum - address);
    if (s->state == NLR_SET && unit && !widen_set(s, low, high, unit, address))
        lose_set(s);
    s->minimum = low;
    s->maximum = high;
    s->unit = unit;
}

static void set_add_terms(struct nlr_stream *s, const struct nlr_node *node, uint64_t nodes, const uint64_t *index)
{
    uint64_t inner[NLR_DEPTH + 1], at = 0;

    while (at < nodes) {
        const struct nlr_node *n = node + at;
        uint64_t value = n->constant;
        for (unsigned k = 0; k < n->depth; k++)
            value += n->coef[k] * index[k];
        if (n->arity == 0) {
            set_add(s, value);
        } else {
            for (unsigned k = 0; k < n->depth; k++)
                inner[k + 1] = index[k];
            for (inner[0] = 0; inner[0] < value; inner[0]++)
                set_add_terms(s, n + 1, n->size - 1, inner);
        }
        at += n->size;
    }
}

/* ---- folding ---------------------------------------------------------------------------------------------------- */

static void release_nodes(struct nlr_stream *s)
{
    struct nlr_memory *m = s->memory;
    if (s->stack)
        m->give(m->owner, s->stack, sizeof *s->stack);
    if (s->evicted)
        m->give(m->owner, s->evicted, s->evicted_room * sizeof *s->evicted);
    s->stack = 0;
    s->evicted = 0;
    s->evicted_nodes = s->evicted_room = 0;
}

/* Gives folding up: everything folded so far is expanded into the set. The growing run stays as it is. */
static void become_set(struct nlr_stream *s)
{
    s->state = NLR_SET;
    s->count = 0;
    set_add_terms(s, s->evicted, s->evicted_nodes, 0);
    set_add_terms(s, s->stack->node, s->stack->nodes, 0);
    release_nodes(s);
}

static uint64_t accesses(const struct nlr_node *node, uint64_t nodes, const uint64_t *index)
{
    uint64_t inner[NLR_DEPTH + 1], at = 0, total = 0;

    while (at < nodes) {
        const struct nlr_node *n = node + at;
        if (n->arity == 0) {
            total++;
        } else {
            uint64_t trip = n->constant;
            for (unsigned k = 0; k < n->depth; k++) {
                trip += n->coef[k] * index[k];
                inner[k + 1] = index[k];
            }
            if (n->height == 1) /* points only */
                total += trip * n->arity;
            else
                for (inner[0] = 0; inner[0] < trip; inner[0]++)
                    total += accesses(n + 1, n->size - 1, inner);
        }
        at += n->size;
    }
    return total;
}

/* Room for `nodes` more evicted nodes; 0 when that is too many. */
static int evicted_reserve(struct nlr_stream *s, uint64_t nodes)
{
    uint64_t want = s->evicted_nodes + nodes, room = s->evicted_room ? s->evicted_room : 128;
    struct nlr_node *fresh;

    if (want > NLR_NODES)
        return 0;
    if (want <= s->evicted_room)
        return 1;
    while (room < want)
        room *= 2;
    fresh = s->memory->take(s->memory->owner, room * sizeof *fresh);
    if (!fresh)
        return 0;
    for (uint64_t i = 0; i < s->evicted_nodes; i++)
        fresh[i] = s->evicted[i];
    if (s->evicted)
        s->memory->give(s->memory->owner, s->evicted, s->evicted_room * sizeof *fresh);
    s->evicted = fresh;
    s->evicted_room = room;
    return 1;
}

/* Moves the older half of the stack out (at once, so that the shift is paid rarely). 0: the stream became a set. */
static int evict(struct nlr_stream *s)
{
    struct nlr_stack *k = s->stack;
    uint32_t terms = (k->terms + 1) / 2, nodes = k->start[terms];

    s->evicted_terms += terms;
    s->evicted_count += accesses(k->node, nodes, 0);
    if (!evicted_reserve(s, nodes) ||
        (s->evicted_terms >= NLR_TRIAL && s->evicted_count < NLR_WORTH * s->evicted_terms)) {
        become_set(s);
        return 0;
    }
    for (uint32_t i = 0; i < nodes; i++)
        s->evicted[s->evicted_nodes + i] = k->node[i];
    s->evicted_nodes += nodes;
    for (uint32_t i = nodes; i < k->nodes; i++)
        k->node[i - nodes] = k->node[i];
    for (uint32_t i = terms; i <= k->terms; i++)
        k->start[i - terms] = (uint16_t)(k->start[i] - nodes);
    k->terms -= terms;
    k->nodes -= nodes;
    return 1;
}

static int same_shape(const struct nlr_node *a, const struct nlr_node *b)
{
    return a->size == b->size && a->arity == b->arity;
}

/* Do the topmost `width` terms continue the loop below them by one iteration? */
static int continues(const struct nlr_stack *k, uint32_t width)
{
    const struct nlr_node *loop = k->node + k->start[k->terms - width - 1];
    const struct nlr_node *body = loop + 1, *top = k->node + k->start[k->terms - width];
    uint32_t nodes = k->nodes - k->start[k->terms - width];

    if (loop->arity != width || loop->size != nodes + 1)
        return 0;
    for (uint32_t i = 0; i < nodes; i++) {
        unsigned depth = top[i].depth;
        if (body[i].constant + body[i].coef[depth] * loop->constant != top[i].constant || !same_shape(body + i, top + i))
            return 0;
        for (unsigned d = 0; d < depth; d++)
            if (body[i].coef[d] != top[i].coef[d])
                return 0;
    }
    return 1;
}

/* Are the topmost 3 * `width` terms three iterations of one body, whose constants advance evenly? */
static int repeats(const struct nlr_stack *k, uint32_t width)
{
    uint32_t first = k->start[k->terms - 3 * width], second = k->start[k->terms - 2 * width];
    uint32_t third = k->start[k->terms - width], nodes = k->nodes - third;
    const struct nlr_node *a = k->node + first, *b = k->node + second, *c = k->node + third;

    if (second - first != nodes || third - second != nodes)
        return 0;
    for (uint32_t i = 0; i < nodes; i++) {
        unsigned depth = c[i].depth;
        if (b[i].constant - a[i].constant != c[i].constant - b[i].constant || !same_shape(a + i, b + i) ||
            !same_shape(b + i, c + i) || depth + c[i].height >= NLR_DEPTH)
            return 0;
        for (unsigned d = 0; d < depth; d++)
            if (a[i].coef[d] != b[i].coef[d] || b[i].coef[d] != c[i].coef[d])
                return 0;
    }
    return 1;
}

static void wrap(struct nlr_stack *k, uint32_t width)
{
    uint32_t term = k->terms - 3 * width, first = k->start[term], nodes = k->nodes - k->start[k->terms - width];
    struct nlr_node *a = k->node + first, *b = a + nodes;
    uint8_t height = 0;

    for (uint32_t i = 0; i < nodes; i++) {
        a[i].coef[a[i].depth] = b[i].constant - a[i].constant;
        a[i].depth++;
        if (a[i].depth == 1 && a[i].height > height)
            height = a[i].height;
    }
    for (uint32_t i = nodes; i > 0; i--)
        a[i] = a[i - 1];
    a[0] = (struct nlr_node){.constant = 3, .size = nodes + 1, .height = (uint8_t)(height + 1), .arity = (uint8_t)width};
    k->terms = term + 1;
    k->nodes = first + nodes + 1;
    k->start[k->terms] = (uint16_t)k->nodes;
}

static void reduce(struct nlr_stack *k)
{
again:
    for (uint32_t width = 1; width <= NLR_WINDOW && width < k->terms; width++) {
        if (continues(k, width)) {
            k->terms -= width;
            k->nodes = k->start[k->terms];
            k->node[k->start[k->terms - 1]].constant++;
            goto again;
        }
        if (3 * width <= k->terms && repeats(k, width)) {
            wrap(k, width);
            goto again;
        }
    }
}

/* Is the run the next iteration of the nest on top of the stack? */
static int is_next_row(const struct nlr_stack *k, uint64_t address, uint64_t stride, uint64_t count)
{
    const struct nlr_node *loop = k->node + k->start[k->terms - 1], *row = loop + 1, *point = loop + 2;
    uint64_t trip = loop->constant;

    return loop->size == 3 && loop->arity == 1 && row->arity == 1 && point->coef[0] == stride &&
           point->constant + point->coef[1] * trip == address && row->constant + row->coef[0] * trip == count;
}

/* Appends that row and those after it. Most runs are such rows, so it is done without building terms; what the longer loop
 * makes of the terms below is looked at when something else comes. */
static void next_rows(struct nlr_stream *s, uint64_t count, uint64_t rows)
{
    s->stack->node[s->stack->start[s->stack->terms - 1]].constant += rows;
    s->stack->grown = 1;
    s->count += rows * count;
}

/* Pushes `rows` runs as a nest. */
static void nest(struct nlr_stream *s, uint64_t address, uint64_t stride, uint64_t count, uint64_t advance, uint64_t rows)
{
    struct nlr_stack *k = s->stack;
    struct nlr_node *n = k->node + k->nodes;

    n[0] = (struct nlr_node){.constant = rows, .size = 3, .height = 2, .arity = 1};
    n[1] = (struct nlr_node){.constant = count, .size = 2, .depth = 1, .height = 1, .arity = 1};
    n[2] = (struct nlr_node){.constant = address, .coef = {stride, advance}, .size = 1, .depth = 2};
    k->nodes += 3;
    k->start[++k->terms] = (uint16_t)k->nodes;
    k->grown = 1;
    s->count += rows * count;
}

static void settle(struct nlr_stack *k)
{
    if (k->grown)
        reduce(k);
    k->grown = 0;
}

/* Pushes a point, or a run of `count` > 1 addresses as a loop. 0: the stream became a set, the term is still to be added. */
static int push(struct nlr_stream *s, uint64_t address, uint64_t stride, uint64_t count)
{
    struct nlr_stack *k = s->stack;
    struct nlr_node *n;

    if (count > 1 && k->terms && is_next_row(k, address, stride, count)) {
        next_rows(s, count, 1);
        return 1;
    }
    settle(k);
    if ((k->terms == NLR_TERMS || k->nodes + 2 > NLR_STACK) && !evict(s))
        return 0;
    n = k->node + k->nodes;
    if (count > 1) {
        n[0] = (struct nlr_node){.constant = count, .size = 2, .height = 1, .arity = 1};
        n[1] = (struct nlr_node){.constant = address, .coef = {stride}, .size = 1, .depth = 1};
        k->nodes += 2;
    } else {
        n[0] = (struct nlr_node){.constant = address, .size = 1};
        k->nodes += 1;
    }
    k->start[++k->terms] = (uint16_t)k->nodes;
    s->count += count;
    reduce(k);
    return 1;
}

/* Empties the growing run into the set. */
static void run_to_set(struct nlr_stream *s)
{
    uint64_t address = s->expected - s->stride * s->run;
    for (uint64_t i = 0; i < s->run; i++, address += s->stride)
        set_add(s, address);
    s->run = 0;
}

void nlr_open(struct nlr_stream *stream, struct nlr_memory *memory)
{
    *stream = (struct nlr_stream){.memory = memory};
}

void nlr_slow(struct nlr_stream *s, uint64_t address)
{
    if (s->state != NLR_FOLDING) {
        set_add(s, address);
        return;
    }
    if (s->run == 0) {
        if (!s->stack)
            s->stack = s->memory->take(s->memory->owner, sizeof *s->stack);
        if (!s->stack) { /* no memory: an inexact set needs none */
            s->state = NLR_INEXACT;
            set_add(s, address);
            return;
        }
        s->expected = address;
        s->stride = 0;
        s->run = 1;
        return;
    }
    /* the run is over: as a whole if it is long, else its first address alone, and the rest may begin another run */
    while (s->run >= 2) {
        uint64_t taken = s->run >= NLR_RUN ? s->run : 1;
        if (!push(s, s->expected - s->stride * s->run, s->stride, taken)) {
            run_to_set(s);
            set_add(s, address);
            return;
        }
        s->run -= taken;
    }
    if (s->run == 0) { /* a row often has the stride of the one before */
        s->expected = address + s->stride;
        s->run = 1;
    } else { /* one address waits: the new one decides the stride */
        s->stride = address - (s->expected - s->stride);
        s->expected = address + s->stride;
        s->run = 2;
    }
}

/* The growing run is a row, that before the one at `address`. Takes `rows` more at once: into the nest on top of the stack, which
 * the row continues, or as a new nest. The last row is the growing run then. 0: not taken. */
static int rows_at_once(struct nlr_stream *s, uint64_t address, uint64_t stride, uint64_t count, uint64_t advance, uint64_t rows)
{
    struct nlr_stack *k = s->stack;
    const struct nlr_node *top = k->terms ? k->node + k->start[k->terms - 1] : 0;

    if (top && is_next_row(k, address - advance, stride, count)) {
        if (top[1].coef[0] != 0 || top[2].coef[1] != advance)
            return 0;
        next_rows(s, count, rows);
    } else {
        if (rows < 3 || (top && top->size == 2 && top->constant == count && top[1].constant == address - 2 * advance))
            return 0; /* a nest has at least three rows, and the rows before belong to it */
        settle(k);
        if (k->terms == NLR_TERMS || k->nodes + 3 > NLR_STACK)
            return 0;
        nest(s, address - advance, stride, count, advance, rows);
    }
    s->expected += advance * rows;
    return 1;
}

void nlr_add_rows(struct nlr_stream *s, uint64_t address, uint64_t stride, uint64_t count, uint64_t advance, uint64_t rows)
{
    if (count == 1 || advance == stride * count) {
        nlr_add_run(s, address, count == 1 ? advance : stride, count * rows);
        return;
    }
    for (; rows; rows--, address += advance) {
        if (s->state == NLR_FOLDING && s->run == count && s->stride == stride && count >= NLR_RUN &&
            s->expected == address - advance + stride * count && rows_at_once(s, address, stride, count, advance, rows))
            return;
        nlr_add_run(s, address, stride, count);
    }
}

void nlr_finish(struct nlr_stream *s)
{
    if (s->state != NLR_FOLDING)
        return;
    while (s->run > 0) {
        uint64_t taken = s->run >= NLR_RUN ? s->run : 1;
        if (!push(s, s->expected - s->stride * s->run, s->stride, taken)) {
            run_to_set(s);
            return;
        }
        s->run -= taken;
    }
    if (s->stack)
        settle(s->stack);
    if (s->stack && s->evicted_nodes) {
        if (evicted_reserve(s, s->stack->nodes)) {
            for (uint32_t i = 0; i < s->stack->nodes; i++)
                s->evicted[s->evicted_nodes + i] = s->stack->node[i];
            s->evicted_nodes += s->stack->nodes;
            s->stack->nodes = s->stack->terms = 0;
        } else {
            become_set(s);
        }
    }
}

void nlr_close(struct nlr_stream *stream)
{
    release_nodes(stream);
    nlr_set_drop(&stream->set, stream->memory);
}

uint64_t nlr_bitmap_bytes(const struct nlr_stream *s)
{
    uint64_t steps = s->unit ? (s->maximum - s->minimum) / s->unit : 0;
    return s->state == NLR_SET && s->count ? steps / 8 + 1 : 0;
}

void nlr_bitmap(const struct nlr_stream *s, uint64_t from, uint64_t bytes, uint8_t *out)
{
    int64_t first = 0;

    nlr_set_place(&s->set, s->minimum, &first);
    nlr_set_bits(&s->set, first + (int64_t)from * 8, bytes, out);
    if (s->unit == 0 && from == 0 && bytes) /* one address only: there never was a set */
        out[0] = 1;
}

uint64_t nlr_feed(struct nlr_stream *streams, uint64_t sites, const uint64_t *records, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        uint64_t site = records[i] >> 48;
        if (site >= sites)
            return i;
        nlr_add(streams + site, records[i] & UINT64_C(0xffffffffffff));
    }
    return count;
}
