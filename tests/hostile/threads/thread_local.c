/* The array is thread-local. */
#include "frame.h"

static __thread struct item own[ITEMS];

struct item *allocate(size_t count)
{
    (void)count;
    return own;
}
