/* Children get zeros for the array. */
#include "frame.h"
#include <sys/mman.h>

struct item *allocate(size_t count)
{
    void *place = mmap(0, count * sizeof(struct item), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise(place, count * sizeof(struct item), MADV_WIPEONFORK);
    return place;
}
