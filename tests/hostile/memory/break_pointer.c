/* The array lies beyond the end of the data segment, without malloc. */
#define _GNU_SOURCE
#include "frame.h"
#include <unistd.h>

struct item *allocate(size_t count)
{
    void *place = sbrk((long)(count * sizeof(struct item)));
    return place == (void *)-1 ? 0 : place;
}
