/* Random streams through the folding code, expanded and compared; meant for -fsanitize=address,undefined.
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include "nlr.h"

static uint64_t live, peak;
static void *take(void *owner, uint64_t bytes)
{
    (void)owner;
    live += bytes;
    peak = live > peak ? live : peak;
    return calloc(1, bytes);
}
static void give(void *owner, void *memory, uint64_t bytes) { (void)owner; live -= bytes; free(memory); }

static uint64_t state = 88172645463325252u;
static uint64_t next(uint64_t below)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state % below;
}

static uint64_t expected[60000], got[60000], count, found, many, cycles;

static uint64_t body(uint64_t at, int depth)
{
    uint64_t trip = next(depth ? 7 : 40), stride = next(4) ? 8 * next(90) : 0 - 8 * next(90), shrink = next(3), parts = 1 + next(3);
    for (uint64_t i = 0; i < trip && count < 50000; i++, at += stride)
        for (uint64_t part = 0; part < parts && count < 50000; part++) {
            if (depth < 3 && next(3)) {
                uint64_t saved = state;
                body(at + 8 * part, depth + 1);
                state = shrink ? saved : state; /* mostly the same body again */
            } else {
                expected[count++] = at + 8 * part + (next(20000) ? 0 : next(99999));
            }
        }
    return at;
}

/* Nests of three loops, some triangular or with rows that are left out or shifted, again and again. */
static void nests(void)
{
    uint64_t trip[3], stride[3], kind = next(6), copies = 1 + next(6);
    for (int k = 0; k < 3; k++) {
        trip[k] = 1 + next(14);
        stride[k] = next(3) ? 8 * next(99) : 0 - 8 * next(99);
    }
    for (uint64_t c = 0; c < copies; c++)
        for (uint64_t i = 0; i < trip[0]; i++)
            for (uint64_t j = 0; j < trip[1] + (kind == 1 ? i : 0); j++)
                for (uint64_t k = 0, shift = kind == 2 && !next(9) ? 8 : 0; k < trip[2] + (kind == 3 ? j < 9 ? j : 9 : 0) + (kind == 4 ? i : 0); k++)
                    if (count < 50000 && (kind != 5 || next(99)))
                        expected[count++] = (1 << 24) + stride[0] * i + stride[1] * j + stride[2] * k + shift;
}

/* Sequences of names in loops, often with a loop within and with a part of an iteration before or behind. */
static void names(void)
{
    uint64_t name[12], part[12], times[12], parts = 1 + next(6), turns = next(4) ? next(60) : next(900), from = next(parts);
    for (int k = 0; k < 12; k++)
        name[k] = next(UINT64_C(1) << 60);
    for (uint64_t k = 0; k < parts; k++) {
        part[k] = next(8);
        times[k] = next(3) ? 1 : 1 + next(20);
    }
    for (uint64_t t = 0; t < turns; t++, from = 0)
        for (uint64_t k = from, last = t + 1 == turns ? next(parts + 1) : parts; k < last; k++)
            for (uint64_t i = 0; i < times[k]; i++)
                for (uint64_t n = 0; n <= part[k] % 3 && count < 50000; n++)
                    expected[count++] = name[part[k] + n];
}

static void expand(const struct nlr_node *node, uint64_t nodes, const uint64_t *index)
{
    uint64_t inner[NLR_DEPTH + 1];
    for (uint64_t at = 0; at < nodes; at += node[at].size) {
        const struct nlr_node *n = node + at;
        uint64_t value = n->constant;
        for (unsigned k = 0; k < n->depth; k++) {
            value += n->coef[k] * index[k];
            inner[k + 1] = index[k];
        }
        if (n->arity == 0 && found < 60000)
            got[found++] = value;
        for (inner[0] = 0; n->arity && inner[0] < value; inner[0]++)
            expand(n + 1, n->size - 1, inner);
    }
}

static int ascending(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* The addresses of a set in ascending order, against its bitmap, which is asked for in parts. */
static int same_set(const struct nlr_stream *s, uint64_t *address, uint64_t addresses)
{
    uint64_t bytes = nlr_bitmap_bytes(s), at = 0, next_bit = 0;
    uint8_t *map = malloc(bytes);

    while (at < bytes) {
        uint64_t part = next(2) ? 1 + next(300) : 1 + next(1 << 20);
        part = part < bytes - at ? part : bytes - at;
        nlr_bitmap(s, at, part, map + at);
        at += part;
    }
    qsort(address, addresses, sizeof *address, ascending);
    if (s->minimum != address[0] || s->maximum != address[addresses - 1])
        return 0;
    for (uint64_t i = 0; i < addresses; i++) {
        uint64_t k = s->unit ? (address[i] - s->minimum) / s->unit : 0;
        if (s->minimum + k * s->unit != address[i])
            return 0;
        for (; next_bit < k; next_bit++)
            if (map[next_bit / 8] >> (next_bit % 8) & 1)
                return 0;
        if (!(map[k / 8] >> (k % 8) & 1))
            return 0;
        next_bit = k + 1;
    }
    free(map);
    return 1;
}

static int verify(const struct nlr_stream *s)
{
    if (s->count != count)
        return 0;
    if (s->state == NLR_FOLDING) {
        found = 0;
        expand(s->evicted, s->evicted_nodes, 0);
        if (s->stack)
            expand(s->stack->node, s->stack->nodes, 0);
        for (uint64_t i = 0; i < count; i++)
            if (got[i] != expected[i])
                return 0;
        return found == count;
    }
    return s->state != NLR_SET || same_set(s, expected, count);
}

/* Irregular addresses: from sparse to dense, growing to either side, in steps that become smaller. */
static void scattered(void)
{
    static const uint64_t units[] = {8, 8, 24, 1, 7, 4096, 40, 64};
    uint64_t n = next(9000), span, unit = units[next(8)], parts = 1 + next(4), middle = UINT64_C(1) << 46;

    for (uint64_t part = 0; part < parts && count < 50000; part++) {
        span = 1 + next(UINT64_C(1) << (next(2) ? next(20) : next(34)));
        for (uint64_t i = 0; i < n && count < 50000; i++)
            expected[count++] = middle + unit * next(span);
        middle = next(2) ? middle + unit * next(span) : middle - unit * next(span);
        unit = next(2) || unit % 8 ? unit : unit / 8;
        middle += next(9) ? 0 : unit / 4;
        n = next(30000);
    }
}

/* Feeds what comes next as single addresses, as a run or as rows. Returns how many addresses that were. */
static uint64_t feed(struct nlr_stream *s, uint64_t at)
{
    uint64_t left = count - at, length = 2, stride, advance, rows = 1;
    if (left < 2 || next(3) == 0) {
        nlr_add(s, expected[at]);
        return 1;
    }
    stride = expected[at + 1] - expected[at];
    while (length < left && expected[at + length] - expected[at + length - 1] == stride)
        length++;
    if (next(4) == 0)
        length = 1 + next(length);
    if (length == left || next(3) == 0) {
        nlr_add_run(s, expected[at], stride, length);
        return length;
    }
    advance = expected[at + length] - expected[at];
    for (uint64_t i = 0; (rows + 1) * length <= left && expected[at + rows * length + i] == expected[at] + advance * rows + stride * i;)
        if (++i == length) {
            i = 0;
            rows++;
        }
    if (rows > 1 && next(4) == 0)
        rows = 1 + next(rows);
    many += rows > 3;
    nlr_add_rows(s, expected[at], stride, length, advance, rows);
    return length * rows;
}

/* Likewise as the same values several times. */
static uint64_t feed_cycle(struct nlr_stream *s, uint64_t at)
{
    uint64_t left = count - at, width = 1 + next(next(3) ? 8 : 60), rows = 0;
    if (width > left)
        width = left;
    for (uint64_t i = 0; (rows + 1) * width <= left && expected[at + rows * width + i] == expected[at + i];)
        if (++i == width) {
            i = 0;
            rows++;
        }
    if (rows > 1 && next(3) == 0)
        rows = 1 + next(rows);
    cycles += rows > 3;
    nlr_add_cycle(s, expected + at, width, rows);
    return width * rows;
}

/* `reads` of random places in `places` words of 8 bytes. Prints the state and the most memory that was taken. */
static int large(uint64_t places, uint64_t reads)
{
    struct nlr_memory memory = {take, give, 0, UINT64_C(1) << 30};
    struct nlr_stream stream;
    uint64_t *address = malloc(reads * sizeof *address);

    nlr_open(&stream, &memory);
    for (uint64_t i = 0; i < reads; i++)
        nlr_add(&stream, address[i] = (UINT64_C(5) << 40) + 8 * next(places));
    nlr_finish(&stream);
    printf("%u %llu %llu\n", stream.state, (unsigned long long)stream.count, (unsigned long long)peak);
    if (stream.state == NLR_SET && !same_set(&stream, address, reads))
        return 1;
    nlr_close(&stream);
    free(address);
    return live != 0 || memory.left != UINT64_C(1) << 30;
}

int main(int argc, char **argv)
{
    int kinds[3] = {0, 0, 0};
    if (argc > 2)
        return large(strtoull(argv[1], 0, 0), strtoull(argv[2], 0, 0));
    for (int round = 0; round < 800; round++) {
        struct nlr_memory memory = {take, give, 0, next(3) ? UINT64_C(1) << 30 : 5000};
        struct nlr_stream stream;
        count = 0;
        if (round % 8 < 1)
            for (uint64_t n = next(9000), span = 1 + next(UINT64_C(1) << next(46)); count < n;)
                expected[count++] = 8 * next(span);
        else if (round % 8 < 3)
            scattered();
        else if (round % 8 < 5)
            for (uint64_t n = 1 + next(9); n > 0; n--)
                names();
        else
            for (uint64_t n = next(30); n > 0 && count < 50000; n--)
                if (round % 3)
                    nests();
                else
                    body(1 << 24, 0);
        nlr_open(&stream, &memory);
        for (uint64_t i = 0; i < count;)
            if (round % 2)
                nlr_add(&stream, expected[i++]);
            else
                i += round % 8 == 4 || next(9) == 0 ? feed_cycle(&stream, i) : feed(&stream, i);
        nlr_finish(&stream);
        if (!verify(&stream)) {
            printf("round %d: %llu addresses differ\n", round, (unsigned long long)count);
            return 1;
        }
        kinds[stream.state]++;
        nlr_close(&stream);
        if (live) {
            printf("round %d: %llu bytes kept\n", round, (unsigned long long)live);
            return 1;
        }
    }
    printf("%d %d %d %llu %llu\n", kinds[0], kinds[1], kinds[2], (unsigned long long)many, (unsigned long long)cycles);
    return 0;
}
