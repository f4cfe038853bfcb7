/* Addresses for memory of our own, apart from the program's.
 * SPDX-License-Identifier: MIT */
#include "agent.h"

uint64_t la_apart(uint64_t size)
{
    static uint64_t next = LA_APART;
    const uint64_t align = size < LA_HUGE ? LA_PAGE : LA_HUGE, at = la_up(next, align), end = la_up(at + size, LA_PAGE);
    if (end >= LA_APART_END)
        return 0;
    next = end + LA_PAGE; /* no two mappings become one */
    return at;
}
