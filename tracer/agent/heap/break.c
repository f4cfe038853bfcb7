/* The end of the program's heap. A call may move it: malloc takes more memory, or free gives some back. Before the call is
 * made again the heap ends where it did, so that the allocator's lists, which are put back, are true.
 * SPDX-License-Identifier: MIT */
#include "agent.h"

static uint64_t parked;

static uint64_t set_break(uint64_t end) { return (uint64_t)la_sys(SYS_brk, end, 0, 0); }

void la_break_park(void) { parked = set_break(0); }

void la_break_back(void)
{
    if (parked && set_break(0) != parked)
        set_break(parked);
}

/* What was given back can be read again, as zeros. */
void la_break_readable(void)
{
    if (parked && set_break(0) < parked)
        set_break(parked);
}
