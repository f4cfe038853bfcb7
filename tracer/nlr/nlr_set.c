/* See nlr_set.h. SPDX-License-Identifier: MIT */
#include "nlr_set.h"

#define PLACES (INT64_C(1) << 17) /* in a region */
#define PAGE_PLACES (NLR_PAGE * 8)
#define SLOT_BITS 10
#define SLOTS (1u << SLOT_BITS) /* of a hash: place in the region + 1, or 0 */
#define MOST (SLOTS / 4 * 3)    /* places in a hash */
#define BITS (MOST + 1)         /* `held` of a region whose pages are bits */
#define ALLOCATOR 32            /* bytes that an allocator keeps beside a block: Valgrind's 32, glibc's 16 */

static void *take(struct nlr_set *set, struct nlr_memory *m, uint64_t bytes)
{
    uint64_t cost = bytes + ALLOCATOR;
    void *found = 0;

    if (set->bytes + cost <= NLR_BITMAP && cost <= m->left)
        found = m->take(m->owner, bytes);
    if (found) {
        set->bytes += cost;
        m->left -= cost;
    }
    return found;
}

static void give(struct nlr_set *set, struct nlr_memory *m, void *memory, uint64_t bytes)
{
    if (!memory)
        return;
    m->give(m->owner, memory, bytes);
    set->bytes -= bytes + ALLOCATOR;
    m->left += bytes + ALLOCATOR;
}

static void give_regions(struct nlr_set *set, struct nlr_memory *m, struct nlr_region *region, uint64_t regions)
{
    for (uint64_t i = 0; i < regions; i++)
        for (int k = 0; k < NLR_PAGES; k++)
            give(set, m, region[i].page[k], NLR_PAGE);
    give(set, m, region, regions * sizeof *region);
}

void nlr_set_drop(struct nlr_set *set, struct nlr_memory *memory)
{
    give_regions(set, memory, set->region, set->regions);
    *set = (struct nlr_set){0};
}

int nlr_set_place(const struct nlr_set *set, uint64_t address, int64_t *place)
{
    int64_t distance = (int64_t)(address - set->origin);

    if (set->shift < 64) {
        *place = distance >> set->shift;
        return (distance & (int64_t)(set->unit - 1)) == 0;
    }
    *place = distance / (int64_t)set->unit;
    return *place * (int64_t)set->unit == distance;
}

static int put_bit(struct nlr_set *set, struct nlr_memory *m, struct nlr_region *r, uint32_t low)
{
    uint8_t **page = r->page + low / PAGE_PLACES;

    if (!*page && !(*page = take(set, m, NLR_PAGE)))
        return 0;
    low %= PAGE_PLACES;
    (*page)[low >> 3] |= (uint8_t)(1u << (low & 7));
    return 1;
}

/* The hash of a region becomes bits. */
static int spread(struct nlr_set *set, struct nlr_memory *m, struct nlr_region *r)
{
    uint32_t *slot = (uint32_t *)(void *)r->page[0];
    int room = 1;

    r->page[0] = 0;
    r->held = BITS;
    for (uint32_t i = 0; i < SLOTS && room; i++)
        room = !slot[i] || put_bit(set, m, r, slot[i] - 1);
    give(set, m, slot, NLR_PAGE);
    return room;
}

int nlr_set_put(struct nlr_set *set, struct nlr_memory *m, int64_t place)
{
    struct nlr_region *r = set->region + ((place >> 17) - set->first);
    uint32_t low = (uint32_t)(place & (PLACES - 1)), *slot;

    if (r->held != BITS) {
        if (!r->page[0] && !(r->page[0] = take(set, m, NLR_PAGE)))
            return 0;
        slot = (uint32_t *)(void *)r->page[0];
        for (uint32_t i = low * 0x9e3779b1u >> (32 - SLOT_BITS);; i = (i + 1) % SLOTS) {
            if (slot[i] == low + 1)
                return 1;
            if (slot[i])
                continue;
            if (r->held == MOST)
                break;
            slot[i] = low + 1;
            r->held++;
            return 1;
        }
        if (!spread(set, m, r))
            return 0;
    }
    return put_bit(set, m, r, low);
}

/* A directory that reaches from `low` to `high`. */
static int reach(struct nlr_set *set, struct nlr_memory *m, int64_t low, int64_t high)
{
    int64_t first = low >> 17, last = high >> 17;
    struct nlr_region *fresh;

    if (set->regions) {
        int64_t end = set->first + (int64_t)set->regions - 1;
        if (first >= set->first && last <= end)
            return 1;
        first = first < set->first ? first : set->first;
        last = last > end ? last : end;
    }
    fresh = take(set, m, (uint64_t)(last - first + 1) * sizeof *fresh);
    if (!fresh)
        return 0;
    for (uint64_t i = 0; i < set->regions; i++)
        fresh[set->first - first + (int64_t)i] = set->region[i];
    give(set, m, set->region, set->regions * sizeof *fresh);
    set->region = fresh;
    set->first = first;
    set->regions = (uint64_t)(last - first + 1);
    return 1;
}

/* Puts the places of a region, the first of which is `base`, to `ratio` times as far from the origin. */
static int stretch(struct nlr_set *set, struct nlr_memory *m, const struct nlr_region *r, int64_t base, int64_t ratio)
{
    const uint32_t *slot = (const uint32_t *)(const void *)r->page[0];

    if (r->held != BITS) {
        for (uint32_t i = 0; slot && i < SLOTS; i++)
            if (slot[i] && !nlr_set_put(set, m, (base + slot[i] - 1) * ratio))
                return 0;
        return 1;
    }
    for (int k = 0; k < NLR_PAGES; k++)
        for (int i = 0; r->page[k] && i < PAGE_PLACES; i++)
            if (r->page[k][i >> 3] >> (i & 7) & 1 && !nlr_set_put(set, m, (base + k * PAGE_PLACES + i) * ratio))
                return 0;
    return 1;
}

/* A smaller unit: region by region the places go to a new directory, so that there are never more pages than in the end, and
 * those of one region. */
static int refine(struct nlr_set *set, struct nlr_memory *m, uint64_t low, uint64_t high, uint64_t unit)
{
    struct nlr_region *old = set->region;
    uint64_t regions = set->regions;
    int64_t first = set->first, ratio = (int64_t)(set->unit / unit), lowest, highest;
    int room;

    set->unit = unit;
    set->shift = unit & (unit - 1) ? 64 : (uint32_t)__builtin_ctzll(unit);
    set->region = 0;
    set->regions = 0;
    nlr_set_place(set, low, &lowest);
    nlr_set_place(set, high, &highest);
    room = reach(set, m, lowest, highest);
    for (uint64_t i = 0; i < regions; i++) {
        room = room && stretch(set, m, old + i, (first + (int64_t)i) * PLACES, ratio);
        for (int k = 0; k < NLR_PAGES; k++) {
            give(set, m, old[i].page[k], NLR_PAGE);
            old[i].page[k] = 0;
        }
    }
    give(set, m, old, regions * sizeof *old);
    return room;
}

int nlr_set_widen(struct nlr_set *set, struct nlr_memory *memory, uint64_t origin, uint64_t low, uint64_t high, uint64_t unit)
{
    int64_t lowest, highest;

    if (high - low > INT64_MAX || (high - low) / unit >= NLR_BITMAP * 8)
        return 0;
    if (!set->unit)
        set->origin = origin;
    if (set->unit != unit)
        return refine(set, memory, low, high, unit);
    nlr_set_place(set, low, &lowest);
    nlr_set_place(set, high, &highest);
    return reach(set, memory, lowest, highest);
}

/* Bits `at` to `at + 7` of `out`, as far as it reaches. */
static void put_byte(uint8_t *out, int64_t bytes, int64_t at, unsigned value)
{
    int64_t byte = at >> 3;

    value <<= at & 7;
    if (byte >= 0 && byte < bytes)
        out[byte] |= (uint8_t)value;
    if (byte + 1 >= 0 && byte + 1 < bytes)
        out[byte + 1] |= (uint8_t)(value >> 8);
}

void nlr_set_bits(const struct nlr_set *set, int64_t from, uint64_t bytes, uint8_t *out)
{
    int64_t last = (from + (int64_t)bytes * 8 - 1) >> 17, end = set->first + (int64_t)set->regions;

    for (uint64_t i = 0; i < bytes; i++)
        out[i] = 0;
    for (int64_t i = from >> 17 > set->first ? from >> 17 : set->first; i <= last && i < end; i++) {
        const struct nlr_region *r = set->region + (i - set->first);
        const uint32_t *slot = (const uint32_t *)(const void *)r->page[0];
        int64_t base = i * PLACES - from;
        if (r->held != BITS) {
            for (uint32_t k = 0; slot && k < SLOTS; k++)
                if (slot[k])
                    put_byte(out, (int64_t)bytes, base + slot[k] - 1, 1);
            continue;
        }
        for (int k = 0; k < NLR_PAGES; k++)
            for (int b = 0; r->page[k] && b < NLR_PAGE; b++)
                if (r->page[k][b])
                    put_byte(out, (int64_t)bytes, base + k * PAGE_PLACES + 8 * b, r->page[k][b]);
    }
}
