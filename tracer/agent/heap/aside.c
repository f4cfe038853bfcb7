/* Memory for what the loader allocates while a mock-up is loaded: not the program's heap, whose lists and blocks would differ
 * from then on from what is put back before a call that allocates and frees.
 * SPDX-License-Identifier: MIT */
#include "agent.h"

#define ROOM (64ull << 20) /* reserved; only what is used takes memory */
#define UNIT 16ull

int la_aside;
static uint8_t *room;
static uint64_t used;

/* NULL: none is left. The size stands before the block; it comes zeroed and is never given out again. */
void *la_aside_allocate(size_t alignment, size_t n)
{
    if (!room && !(room = la_memory(ROOM)))
        return NULL;
    alignment = alignment < UNIT ? UNIT : alignment;
    const uint64_t at = la_up((uint64_t)room + used + UNIT, alignment) - (uint64_t)room;
    if (n > ROOM || at + n > ROOM)
        return NULL;
    used = la_up(at + n, UNIT);
    *(size_t *)(room + at - UNIT) = n;
    return room + at;
}

int la_is_aside(const void *p)
{
    return room && (const uint8_t *)p >= room && (const uint8_t *)p < room + ROOM;
}

size_t la_aside_bytes(const void *p)
{
    return *(const size_t *)((const uint8_t *)p - UNIT);
}
