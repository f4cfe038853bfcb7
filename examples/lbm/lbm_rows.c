/* lbm.c with a row for each direction, row after row of the lattice. SPDX-License-Identifier: MIT */
#include "../common.h"

static inline size_t at(long n, long x, long y, int q)
{
    return (size_t)((9 * y + q) * n + x);
}

#include "lbm.h"
