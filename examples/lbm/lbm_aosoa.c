/* lbm.c in blocks of eight cells, direction by direction. SPDX-License-Identifier: MIT */
#include "../common.h"

static inline size_t at(long n, long x, long y, int q)
{
    return (size_t)(((y * n + x) / 8 * 9 + q) * 8 + (y * n + x) % 8);
}

#include "lbm.h"
