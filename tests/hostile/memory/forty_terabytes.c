/* Forty terabytes that may be written, as thread sanitizers map them, of which next to nothing is. */
#include "frame.h"
#include <sys/mman.h>

struct item *allocate(size_t count)
{
    char *place = mmap(0, 40UL << 40, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    (void)count;
    if (place == MAP_FAILED)
        return 0;
    return (void *)(place + (20UL << 40));
}
