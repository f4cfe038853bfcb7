/* The array moves. */
#define _GNU_SOURCE
#include "frame.h"
#include <sys/mman.h>
#include <unistd.h>

enum { SIZE = ITEMS * sizeof(struct item) };

struct item *allocate(size_t count)
{
    (void)count;
    return mmap(0, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

void between(struct item **items, int step)
{
    if (step % 10)
        return;
    void *place = mmap(0, SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    *items = mremap(*items, SIZE, SIZE, MREMAP_MAYMOVE | MREMAP_FIXED, place);
}
