/* A protection key on the array, where the processor has them. */
#define _GNU_SOURCE
#include "frame.h"
#include <sys/mman.h>

struct item *allocate(size_t count)
{
    void *place = mmap(0, count * sizeof(struct item), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int key = pkey_alloc(0, 0);
    if (key > 0)
        pkey_mprotect(place, count * sizeof(struct item), PROT_READ | PROT_WRITE, key);
    return place;
}
