/* Who allocated a block: the return addresses above the allocation, found by libgcc's unwinder (which is linked into the
 * agent: the program's mappings stay as they are). Frame pointers are mostly absent, so a frame costs some 100 ns: of small
 * blocks, of which there can be millions, only the first few of each site have a stack. Each stack is kept once.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "agent.h"
#include <unwind.h>

enum {
    MOST = 1 << 16, /* walks of one run: no program is slowed by more than half a second */
    SMALL = 1 << 14, /* of them for small blocks, besides */
    FIRST = 64,      /* small blocks of one site */
    SITE_BITS = 12,
    PROBES = 8,
    SLOT_BITS = 18,
    OWN = 8 /* frames of the agent and of operator new, at most */
};

struct la_stack *la_stacks;
uint64_t la_stacks_count;
static uint32_t *numbers; /* hash table; 0: free slot */
static uint64_t walks, small_walks;
static struct {
    uint64_t site;
    uint32_t blocks;
} sites[1 << SITE_BITS];
static volatile int lock;

struct walk {
    uint64_t site, skipped, count;
    struct la_stack found;
};

void la_stacks_start(void)
{
    la_stacks = la_memory(la_stacks_bytes());
    numbers = la_stacks ? (uint32_t *)(la_stacks + MOST + SMALL + 1) : NULL;
}

uint64_t la_stacks_bytes(void) { return la_up((MOST + SMALL + 1) * sizeof *la_stacks + (sizeof *numbers << SLOT_BITS), LA_PAGE); }

static _Unwind_Reason_Code visit(struct _Unwind_Context *context, void *data)
{
    struct walk *w = data;
    int interrupted = 0; /* a signal came at this very instruction: it is no return address */
    uint64_t pc = _Unwind_GetIPInfo(context, &interrupted);
    if (!pc)
        return _URC_END_OF_STACK;
    if (!w->count && pc != w->site)
        return ++w->skipped < OWN ? _URC_NO_REASON : _URC_END_OF_STACK;
    w->found.pc[w->count++] = pc + (interrupted != 0);
    return w->count < LA_FRAMES ? _URC_NO_REASON : _URC_END_OF_STACK;
}

static int same(const struct la_stack *a, const struct la_stack *b)
{
    for (int i = 0; i < LA_FRAMES; i++)
        if (a->pc[i] != b->pc[i])
            return 0;
    return 1;
}

static uint64_t hash(const struct la_stack *s)
{
    uint64_t h = 0;
    for (int i = 0; i < LA_FRAMES; i++) {
        h = (h ^ s->pc[i]) * 0x9e3779b97f4a7c15ull;
        h ^= h >> 29;
    }
    return h >> (64 - SLOT_BITS);
}

static uint64_t number_of(const struct la_stack *s)
{
    uint64_t i = hash(s);
    while (numbers[i] && !same(&la_stacks[numbers[i]], s))
        i = (i + 1) & ((1u << SLOT_BITS) - 1);
    if (!numbers[i]) {
        numbers[i] = (uint32_t)++la_stacks_count;
        la_copy(&la_stacks[numbers[i]], s, sizeof *s);
    }
    return numbers[i];
}

static __attribute__((noinline)) uint64_t walk_from(uint64_t site)
{
    struct walk w = {.site = site};
    _Unwind_Backtrace(visit, &w);
    if (!w.count)
        return 0;
    while (__atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE))
        la_sys(SYS_sched_yield, 0, 0, 0);
    uint64_t number = number_of(&w.found);
    __atomic_store_n(&lock, 0, __ATOMIC_RELEASE);
    return number;
}

/* The number of the stack above the call that returns to `site`; 0 where there is none. Allocates nothing. */
uint64_t la_stack_of(uint64_t site)
{
    return la_stacks && __atomic_fetch_add(&walks, 1, __ATOMIC_RELAXED) < MOST ? walk_from(site) : 0;
}

/* Whether a block is one of the first that `site` allocates. Sites beyond those that the table takes have none. */
static int among_first(uint64_t site)
{
    uint64_t at = site * 0x9e3779b97f4a7c15ull >> (64 - SITE_BITS);
    for (int k = 0; k < PROBES; k++, at = (at + 1) & ((1u << SITE_BITS) - 1)) {
        uint64_t known = __atomic_load_n(&sites[at].site, __ATOMIC_RELAXED);
        if (!known && __atomic_compare_exchange_n(&sites[at].site, &known, site, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
            known = site;
        if (known == site)
            return __atomic_load_n(&sites[at].blocks, __ATOMIC_RELAXED) < FIRST &&
                   __atomic_fetch_add(&sites[at].blocks, 1, __ATOMIC_RELAXED) < FIRST;
    }
    return 0;
}

/* The same of a small block. */
uint64_t la_small_stack_of(uint64_t site)
{
    if (!la_stacks || !among_first(site) || __atomic_fetch_add(&small_walks, 1, __ATOMIC_RELAXED) >= SMALL)
        return 0;
    return walk_from(site);
}
