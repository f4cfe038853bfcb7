/* Folding of address streams: run lengths first, then nested loop recognition (A. Ketterlin, P. Clauss, "Prediction and
 * trace compression of data access addresses through nested loop recognition", CGO 2008).
 *
 * Freestanding: no libc, memory comes from the caller, so that a Valgrind tool can include the same files. One
 * `struct nlr_stream` takes the addresses of one reference, in order. It ends either as NODES (exact, with order) or, where
 * the addresses do not fold, as a SET: minimum, maximum, gcd and a bitmap (nlr_set.h).
 *
 * SPDX-License-Identifier: MIT */
#ifndef LAYOUT_ADVISE_NLR_H
#define LAYOUT_ADVISE_NLR_H
#include <stdint.h>

#include "nlr_set.h"

#define NLR_DEPTH 8       /* deepest nest */
#define NLR_TERMS 64      /* terms on the stack */
#define NLR_WINDOW 8      /* longest loop body, in terms */
#define NLR_STACK 512     /* nodes on the stack; more are evicted like too many terms */
#define NLR_RUN 4         /* shortest run (three equal strides) */
#define NLR_TRIAL 2048    /* evicted terms before a stream may be called irregular */
#define NLR_WORTH 16      /* ... which it is with fewer references a term */
#define NLR_NODES 16384   /* evicted nodes kept per stream; with more it becomes a set */

/* A node of a term, in preorder: a loop is followed by its body. `constant + sum(coef[k] * index)` is the address of a point
 * or the trip count of a loop; coef[0] belongs to the NEAREST enclosing loop, so that wrapping a term into a new outermost
 * loop only appends a coefficient. Arithmetic is modulo 2^64. */
struct nlr_node {
    uint64_t constant;
    uint64_t coef[NLR_DEPTH];
    uint32_t size;   /* nodes of the subtree, itself included; 1 for a point */
    uint8_t depth;   /* enclosing loops within the term */
    uint8_t height;  /* loops on the longest path down, itself included; 0 for a point */
    uint8_t arity;   /* top-level terms of a loop's body; 0 for a point */
    uint8_t reserved;
};

enum nlr_state { NLR_FOLDING = 0, NLR_SET = 1, NLR_INEXACT = 2 };

struct nlr_stack {
    uint32_t terms, nodes;
    uint32_t grown; /* the top term took another iteration; what that makes of the terms below it was not looked at yet */
    uint16_t start[NLR_TERMS + 1];
    struct nlr_node node[NLR_STACK];
};

struct nlr_stream {
    /* the run that is growing: next address, stride, addresses so far. After one address the stride is a guess, that of the
     * run before; after two it is theirs. */
    uint64_t expected, stride, run;
    uint64_t count;                  /* addresses before the growing run, in a set: all */
    uint32_t state;
    struct nlr_memory *memory;
    struct nlr_stack *stack;
    struct nlr_node *evicted;
    uint64_t evicted_nodes, evicted_room, evicted_terms, evicted_count;
    uint64_t minimum, maximum, unit; /* of a set; unit is the gcd so far, 0 for a single address */
    struct nlr_set set;              /* without a unit: of one address at most, or inexact */
};

void nlr_open(struct nlr_stream *stream, struct nlr_memory *memory);
void nlr_slow(struct nlr_stream *stream, uint64_t address);
/* `rows` times `count` addresses: `stride` apart within a row, and `advance` from row to row. */
void nlr_add_rows(struct nlr_stream *stream, uint64_t address, uint64_t stride, uint64_t count, uint64_t advance,
                  uint64_t rows);
/* `rows` times the `count` values (at least one), one after another. */
void nlr_add_cycle(struct nlr_stream *stream, const uint64_t *value, uint64_t count, uint64_t rows);
void nlr_finish(struct nlr_stream *stream); /* nothing may be added afterwards */
void nlr_close(struct nlr_stream *stream);

/* Bytes of the final bitmap, whose bit k stands for `minimum + unit * k`; and `bytes` of them from the byte `from` on. */
uint64_t nlr_bitmap_bytes(const struct nlr_stream *stream);
void nlr_bitmap(const struct nlr_stream *stream, uint64_t from, uint64_t bytes, uint8_t *out);

/* `count` records `address | site << 48`. Returns how many were taken: fewer than `count` at a site out of range. */
uint64_t nlr_feed(struct nlr_stream *streams, uint64_t sites, const uint64_t *records, uint64_t count);

static inline void nlr_add(struct nlr_stream *stream, uint64_t address)
{
    if (address == stream->expected && stream->run) {
        stream->expected += stream->stride;
        stream->run++;
    } else {
        nlr_slow(stream, address);
    }
}

/* `count` addresses, `stride` apart. */
static inline void nlr_add_run(struct nlr_stream *stream, uint64_t address, uint64_t stride, uint64_t count)
{
    for (; count; address += stride, count--) {
        if (address == stream->expected && stride == stream->stride && stream->run) {
            stream->expected += stride * count;
            stream->run += count;
            return;
        }
        nlr_add(stream, address);
    }
}
#endif
