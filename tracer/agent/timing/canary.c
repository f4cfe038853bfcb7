/* How fast the processor is just now. Another program on the other hardware thread of this core, or a lower frequency, slows
 * code that keeps the front end busy by up to two times and code that waits for memory hardly at all: ratios of times taken in
 * such a phase hold only in such phases. A loop that fills every place in which the core can start an instruction takes up to
 * twice as long then, and touches nothing but registers: no vector registers, since the probe runs while the program's are live.
 * Every second instruction does nothing: of additions alone a core that starts eight in a cycle does no more than it has units
 * for, and the other thread takes the rest unnoticed (docs/decisions/0050).
 * SPDX-License-Identifier: MIT */
#include "agent.h"

#define TURNS 4000 /* 64,000 instructions, some 2 us */
#define LOOKS 64   /* at the clock, one for so many canaries */
#define CHUNK (256ull << 10)

uint64_t la_canary(void)
{
    uint64_t a = 0, b = 0, c = 0, d = 0, turns = TURNS, start = la_tsc();
    __asm__ volatile(".p2align 6\n1:\n"
                     "add $1, %0\n nop\n add $1, %1\n nop\n add $1, %2\n nop\n add $1, %3\n nop\n"
                     "add $1, %0\n nop\n add $1, %1\n nop\n add $1, %2\n nop\n"
                     "dec %4\n jnz 1b\n"
                     : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(turns)
                     :
                     : "cc");
    return la_tsc() - start;
}

/* What others do to the memory does not show in registers: reading what is in no cache takes up to twice as long in phases of
 * 10 ms to seconds, and so do calls whose data no cache holds. It displaces data of its own size: for calls with much more. */
uint64_t la_memory_canary(void)
{
    static uint8_t *chunk;
    uint64_t sum = 0;
    if (!chunk) {
        chunk = la_memory(CHUNK);
        if (!chunk)
            return 0;
        for (uint64_t at = 0; at < CHUNK; at += LA_PAGE)
            *(volatile uint64_t *)(chunk + at) = at;
        la_flush((uint64_t)chunk, (uint64_t)chunk + CHUNK);
    }
    const uint64_t start = la_tsc();
    for (uint64_t at = 0; at < CHUNK; at += LA_LINE)
        sum += *(volatile uint64_t *)(chunk + at);
    const uint64_t ticks = la_tsc() - start;
    la_flush((uint64_t)chunk, (uint64_t)chunk + CHUNK);
    return ticks + (sum == ~0ull);
}

static int is_slowed(uint64_t limit, uint64_t memory_limit)
{
    return la_canary() > limit || (memory_limit && la_memory_canary() > memory_limit);
}

/* Wait until a canary takes at most `limit` ticks, and that of the memory its own (0: it is not looked at); at most *patience
 * ns, which become less by what was waited. */
void la_wait_calm(uint64_t limit, uint64_t memory_limit, uint64_t *patience)
{
    if (!limit || !*patience || !is_slowed(limit, memory_limit))
        return;
    uint64_t start = la_clock(CLOCK_MONOTONIC), waited = 0;
    for (uint64_t n = 1; waited < *patience && is_slowed(limit, memory_limit); n++)
        if (memory_limit || n % LOOKS == 0)
            waited = la_clock(CLOCK_MONOTONIC) - start;
    waited = la_clock(CLOCK_MONOTONIC) - start;
    *patience -= waited < *patience ? waited : *patience;
}
