/* Huge pages are asked for and refused in turn. */
#include "frame.h"
#include <stdlib.h>
#include <sys/mman.h>

struct item *allocate(size_t count)
{
    (void)count;
    void *place = aligned_alloc(2 << 20, 4 << 20);
    madvise(place, 4 << 20, MADV_HUGEPAGE);
    return place;
}

void between(struct item **items, int step)
{
    madvise(*items, 2 << 20, step % 2 ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
}
