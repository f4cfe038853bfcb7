/* A sequence of values that comes several times in a row, folded at once. See nlr.h. SPDX-License-Identifier: MIT */
#include "nlr.h"

/* Values that the nodes stand for: 0 if an index changes what they are, more than `most` if there are more. */
static uint64_t length(const struct nlr_node *node, uint64_t nodes, uint64_t most)
{
    uint64_t total = 0;

    for (uint64_t at = 0; at < nodes && total <= most; at += node[at].size) {
        const struct nlr_node *n = node + at;
        uint64_t inner = 1;
        for (unsigned k = 0; k < n->depth; k++)
            if (n->coef[k])
                return 0;
        if (n->arity) {
            inner = length(n + 1, n->size - 1, most);
            if (!inner || !n->constant)
                return 0;
            if (n->constant > most || inner > most)
                return most + 1;
            inner *= n->constant;
        }
        total += inner;
    }
    return total;
}

/* Are these the values from `*at` on, which begin again behind the last? Their number is known to be constant. */
static int follows(const struct nlr_node *node, uint64_t nodes, const uint64_t *value, uint64_t count, uint64_t *at)
{
    for (uint64_t place = 0; place < nodes; place += node[place].size) {
        const struct nlr_node *n = node + place;
        if (n->arity == 0) {
            if (value[*at] != n->constant)
                return 0;
            *at = *at + 1 < count ? *at + 1 : 0;
            continue;
        }
        for (uint64_t i = 0; i < n->constant; i++)
            if (!follows(n + 1, n->size - 1, value, count, at))
                return 0;
    }
    return 1;
}

/* The growing run, likewise. */
static int run_follows(const struct nlr_stream *s, const uint64_t *value, uint64_t count, uint64_t *at)
{
    uint64_t address = s->expected - s->stride * s->run;

    for (uint64_t i = 0; i < s->run; i++, address += s->stride) {
        if (value[*at] != address)
            return 0;
        *at = *at + 1 < count ? *at + 1 : 0;
    }
    return 1;
}

/* A loop near the top of the stack whose body is the values, from whichever of them on, where what is above it is the beginning of
 * its next iteration. The values, once more, then do to the stream what one more iteration of that loop does:
 * with body B and beginning X, B X = X V. 0: there is none. */
static struct nlr_node *cycle(const struct nlr_stream *s, const uint64_t *value, uint64_t count)
{
    struct nlr_stack *k = s->stack;
    uint64_t above = s->run;

    for (uint32_t term = k->terms; term-- > 0 && above <= 2 * count + 2;) { /* of few values more than once may wait */
        struct nlr_node *top = k->node + k->start[term];
        if (top->arity && length(top + 1, top->size - 1, count) == count) {
            uint64_t at = (count - above % count) % count, end = at;
            if (follows(top + 1, top->size - 1, value, count, &at) &&
                follows(top + top->size, k->nodes - k->start[term + 1], value, count, &end) &&
                run_follows(s, value, count, &end))
                return top;
        }
        uint64_t more = length(top, top->size, 2 * count + 2);
        if (!more)
            return 0;
        above += more;
    }
    return 0;
}

void nlr_add_cycle(struct nlr_stream *s, const uint64_t *value, uint64_t count, uint64_t rows)
{
    for (; rows; rows--) {
        struct nlr_node *loop = s->state == NLR_FOLDING && s->stack ? cycle(s, value, count) : 0;
        if (loop) {
            loop->constant += rows;
            s->count += rows * count;
            s->stack->grown |= loop + loop->size == s->stack->node + s->stack->nodes;
            return;
        }
        for (uint64_t i = 0; i < count; i++)
            nlr_add(s, value[i]);
    }
}
