/* An allocator of its own, under the C library's names. */
#include "frame.h"
#include <stddef.h>
#include <string.h>

static char pool[64 << 20] __attribute__((aligned(64)));
static size_t used;

void *malloc(size_t size)
{
    size_t start = used;
    used += (size + 79) & ~63UL;
    if (used > sizeof pool)
        return 0;
    *(size_t *)(pool + start) = size;
    return pool + start + 16;
}

void free(void *block)
{
    (void)block;
}

void *calloc(size_t count, size_t size)
{
    return malloc(count * size);
}

void *realloc(void *block, size_t size)
{
    void *fresh = malloc(size);
    if (block && fresh)
        memcpy(fresh, block, size < ((size_t *)block)[-2] ? size : ((size_t *)block)[-2]);
    return fresh;
}
