/* lbm.c with an array for each direction. SPDX-License-Identifier: MIT */
#include "../common.h"

static inline size_t at(long n, long x, long y, int q)
{
    return (size_t)((q * n + y) * n + x);
}

#include "lbm.h"
