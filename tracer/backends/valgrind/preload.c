/* The agent's table of heap blocks alone, preloaded into the program that runs under Valgrind or step by step: its blocks
 * then have the numbers that they have in the parked program.
 * SPDX-License-Identifier: MIT */
#include "agent.h"

int la_alive(void) { return 1; }

uint64_t la_stack_of(uint64_t site) /* the parked program knows */
{
    (void)site;
    return 0;
}

uint64_t la_small_stack_of(uint64_t site) { return la_stack_of(site); }

__attribute__((constructor)) static void la_start(void) { la_blocks_start(); }
