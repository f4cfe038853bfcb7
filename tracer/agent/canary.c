/* How fast the processor is just now. Another program on the other hardware thread of this core, or a lower frequency, slows
 * code that keeps the front end busy by up to two times and code that waits for memory hardly at all: ratios of times taken in
 * such a phase hold only in such phases. A loop of independent additions takes longer then, and touches nothing but registers:
 * no vector registers, since the probe runs while the program's are live.
 * SPDX-License-Identifier: MIT */
#include "agent.h"

#define TURNS 2000 /* 32,000 instructions, some 2 us */
#define LOOKS 64   /* at the clock, one for so many canaries */

uint64_t la_canary(void)
{
    uint64_t a = 0, b = 0, c = 0, d = 0, turns = TURNS, start = la_tsc();
    __asm__ volatile("1:\n"
                     "add $1, %0\n add $1, %1\n add $1, %2\n add $1, %3\n"
                     "add $1, %0\n add $1, %1\n add $1, %2\n add $1, %3\n"
                     "add $1, %0\n add $1, %1\n add $1, %2\n add $1, %3\n"
                     "add $1, %0\n add $1, %1\n"
                     "dec %4\n jnz 1b\n"
                     : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(turns)
                     :
                     : "cc");
    return la_tsc() - start;
}

/* Wait until a canary takes at most `limit` ticks; at most *patience ns, which become less by what was waited. */
void la_wait_calm(uint64_t limit, uint64_t *patience)
{
    if (!limit || !*patience || la_canary() <= limit)
        return;
    uint64_t start = la_clock(CLOCK_MONOTONIC), waited = 0;
    for (uint64_t n = 1; waited < *patience && la_canary() > limit; n++)
        if (n % LOOKS == 0)
            waited = la_clock(CLOCK_MONOTONIC) - start;
    waited = la_clock(CLOCK_MONOTONIC) - start;
    *patience -= waited < *patience ? waited : *patience;
}
