/* Forget what the processor has learnt of the branches of a call. One that is repeated with the same data takes the same way
 * each time, and processors learn some ten thousand turns of it, which the running program's calls do not repeat. What is
 * learnt gives way to something else that is learnt: a sequence of random jumps that comes back a few times (random jumps that
 * never come back are not worth keeping, and displace little). After it a call takes as long as with data that is new each
 * time (docs/decisions/0052).
 * SPDX-License-Identifier: MIT */
#include "agent.h"

#define TIMES 20 /* the sequence is run */
#define PARTS 8  /* of 4096 jumps each */

/* Each jump goes to the next but one instruction, or not: 32 of them by the bits of a word, then the next random word
 * (Marsaglia, "Xorshift RNGs", Journal of Statistical Software 8/14, 2003). */
static uint64_t jump(uint64_t word)
{
    uint64_t left, bits;
    __asm__ volatile(".rept 128\n"
                     "mov %0, %1\n shl $13, %1\n xor %1, %0\n"
                     "mov %0, %1\n shr $7, %1\n xor %1, %0\n"
                     "mov %0, %1\n shl $17, %1\n xor %1, %0\n"
                     "mov %0, %2\n"
                     ".rept 32\n"
                     "shr $1, %2\n jc 1f\n nop\n1:\n"
                     ".endr\n"
                     ".endr\n"
                     : "+r"(word), "=&r"(left), "=&r"(bits)
                     :
                     : "cc");
    return word;
}

void la_forget(void)
{
    const uint64_t first = la_tsc() | 1;
    for (int time = 0; time < TIMES; time++) {
        uint64_t word = first;
        for (int part = 0; part < PARTS; part++)
            word = jump(word);
    }
}
