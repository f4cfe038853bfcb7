/* A lattice Boltzmann step on plain arrays, the nine numbers of a cell side by side: no declaration tells. SPDX-License-Identifier: MIT */
#include "../common.h"

static inline size_t at(long n, long x, long y, int q)
{
    return (size_t)(9 * (y * n + x) + q);
}

#include "lbm.h"
