/* MMX registers in the hot loop. */
#include "frame.h"
#include <mmintrin.h>

__attribute__((noinline)) void work(struct item *items, int count)
{
    for (int i = 0; i < count; i++) {
        __m64 *pair = (__m64 *)&items[i].a;
        pair[0] = _mm_add_pi32(pair[0], pair[1]);
        pair[1] = _mm_set1_pi32(i);
    }
    _mm_empty();
}
