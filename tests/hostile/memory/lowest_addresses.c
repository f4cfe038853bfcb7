/* Fixed addresses: 1 MiB, and the highest that a program may have. */
#define _GNU_SOURCE
#include "frame.h"
#include <sys/mman.h>

struct item *allocate(size_t count)
{
    mmap((void *)0x7fffffe00000, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    void *place = mmap((void *)0x100000, count * sizeof(struct item), PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    return place == MAP_FAILED ? 0 : place;
}
