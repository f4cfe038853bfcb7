/* Pages are given back to the system between the calls. */
#include "frame.h"
#include <sys/mman.h>

struct item *allocate(size_t count)
{
    return mmap(0, count * sizeof(struct item), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

void between(struct item **items, int step)
{
    if (step % 10 == 0)
        madvise(*items, 1 << 20, MADV_DONTNEED);
}
