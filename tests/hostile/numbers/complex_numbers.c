/* Complex numbers, with the library function for their product. */
#include "frame.h"
#include <complex.h>

__attribute__((noinline)) void work(struct item *items, int count)
{
    for (int i = 0; i < count; i++) {
        double complex *pair = (double complex *)&items[i].x;
        pair[0] = pair[0] * (pair[1] + 0.5) * 0.25;
    }
}
