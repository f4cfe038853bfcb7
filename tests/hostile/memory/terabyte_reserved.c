/* A terabyte of addresses that nothing backs. */
#include "frame.h"
#include <sys/mman.h>

struct item *allocate(size_t count)
{
    char *place = mmap(0, 1UL << 40, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (place == MAP_FAILED)
        return 0;
    place += 1UL << 39;
    return mprotect(place, (count * sizeof(struct item) + 4095) & ~4095UL, PROT_READ | PROT_WRITE) ? 0 : (void *)place;
}
