/* Who allocated the large blocks: the return addresses above the allocation, found by libgcc's unwinder (which is linked
 * into the agent: the program's mappings stay as they are). Frame pointers are mostly absent, so a frame costs some 100 ns:
 * small blocks, of which there can be millions, keep their site only. Each stack is kept once.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "agent.h"
#include <unwind.h>

enum {
    MOST = 1 << 16, /* walks of one run: no program is slowed by more than half a second */
    SLOT_BITS = 18,
    OWN = 8 /* frames of the agent and of operator new, at most */
};

struct la_stack *la_stacks;
uint64_t la_stacks_count;
static uint32_t *numbers; /* hash table; 0: free slot */
static uint64_t walks;
static volatile int lock;

struct walk {
    uint64_t site, skipped, count;
    struct la_stack found;
};

void la_stacks_start(void)
{
    la_stacks = la_memory(la_stacks_bytes());
    numbers = la_stacks ? (uint32_t *)(la_stacks + MOST + 1) : NULL;
}

uint64_t la_stacks_bytes(void) { return la_up((MOST + 1) * sizeof *la_stacks + (sizeof *numbers << SLOT_BITS), LA_PAGE); }

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

/* The number of the stack above the call that returns to `site`; 0 where there is none. Allocates nothing. */
uint64_t la_stack_of(uint64_t site)
{
    struct walk w = {.site = site};
    if (!la_stacks || __atomic_fetch_add(&walks, 1, __ATOMIC_RELAXED) >= MOST)
        return 0;
    _Unwind_Backtrace(visit, &w);
    if (!w.count)
        return 0;
    while (__atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE))
        la_sys(SYS_sched_yield, 0, 0, 0);
    uint64_t number = number_of(&w.found);
    __atomic_store_n(&lock, 0, __ATOMIC_RELEASE);
    return number;
}
