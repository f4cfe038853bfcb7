/* A growing set of addresses in bounded memory: the exact set behind a stream that does not fold.
 *
 * Address `origin + unit * k` is place k; the origin never changes, so that a set which grows, on either side, moves nothing
 * but its directory. A region of 2^17 places is, while it holds few of them, one page with a hash of them, and then up to four
 * pages of bits. Every page has the same size: what is given back is what is taken next. Freestanding like nlr.h.
 *
 * SPDX-License-Identifier: MIT */
#ifndef LAYOUT_ADVISE_NLR_SET_H
#define LAYOUT_ADVISE_NLR_SET_H
#include <stdint.h>

#define NLR_BITMAP (UINT64_C(64) << 20) /* most bytes that a set takes, and that its bitmap may have (design, section 3) */
#define NLR_PAGE 4096
#define NLR_PAGES 4 /* of bits, in a region */

/* Memory of the caller. `take` returns zeroed memory or a null pointer. `left` is how many bytes all sets together may still
 * take. */
struct nlr_memory {
    void *(*take)(void *owner, uint64_t bytes);
    void (*give)(void *owner, void *memory, uint64_t bytes);
    void *owner;
    uint64_t left;
};

struct nlr_region {
    uint8_t *page[NLR_PAGES];
    uint32_t held; /* places in the hash on page 0; beyond its room: the pages are bits */
};

struct nlr_set {
    uint64_t origin, unit;
    uint32_t shift; /* the unit is 2^shift; 64 where it is not a power of two */
    int64_t first;  /* region i of the directory begins at place `(first + i) << 17` */
    uint64_t regions;
    struct nlr_region *region;
    uint64_t bytes; /* taken, all in all */
};

/* Makes the places from `low` to `high` in steps of `unit` addressable; `unit` divides the one before. A new set begins at
 * `origin`, of which all are multiples of the unit apart. 0: that would need too much memory; the set is then to be dropped. */
int nlr_set_widen(struct nlr_set *set, struct nlr_memory *memory, uint64_t origin, uint64_t low, uint64_t high, uint64_t unit);
/* Is `address` at a place of the set? Then it is left in `*place`. */
int nlr_set_place(const struct nlr_set *set, uint64_t address, int64_t *place);
/* Puts a place in that is addressable. 0: no memory; the set is then to be dropped. */
int nlr_set_put(struct nlr_set *set, struct nlr_memory *memory, int64_t place);
void nlr_set_drop(struct nlr_set *set, struct nlr_memory *memory);
/* `bytes` bytes of bits: bit i of `out` is place `from + i`. */
void nlr_set_bits(const struct nlr_set *set, int64_t from, uint64_t bytes, uint8_t *out);
#endif
