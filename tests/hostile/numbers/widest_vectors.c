/* Vectors of 512 bits, where the processor has them. */
#include "frame.h"
#include <immintrin.h>

__attribute__((target("avx512f"), noinline)) static void wide(struct item *items, int count)
{
    for (int i = 0; i < count; i++) {
        __m512d all = _mm512_loadu_pd(items + i);
        _mm512_mask_storeu_pd(items + i, 0x5, _mm512_add_pd(all, _mm512_set1_pd(0.5)));
    }
}

__attribute__((noinline)) void work(struct item *items, int count)
{
    if (__builtin_cpu_supports("avx512f"))
        wide(items, count);
    else
        items[0].x += count;
}
