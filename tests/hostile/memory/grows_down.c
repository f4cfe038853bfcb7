/* The array lies in a mapping that grows downwards. */
#define _GNU_SOURCE
#include "frame.h"
#include <sys/mman.h>

struct item *allocate(size_t count)
{
    size_t size = (count * sizeof(struct item) + 4095) & ~4095UL;
    void *place = mmap(0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN, -1, 0);
    return place == MAP_FAILED ? 0 : place;
}
