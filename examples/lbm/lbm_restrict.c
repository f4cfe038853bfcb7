/* lbm_soa.c whose arrays are promised not to overlap: gcc gives up on so many pairs of them. SPDX-License-Identifier: MIT */
#define OWN_RELAX
#include "../common.h"

static inline size_t at(long n, long x, long y, int q)
{
    return (size_t)((q * n + y) * n + x);
}

#include "lbm.h"

/* A row of `n` cells; each pointer is at the first cell's number. */
static inline void row(long n, double rate, const double *restrict rest, const double *restrict east,
                       const double *restrict north, const double *restrict west, const double *restrict south,
                       const double *restrict ne, const double *restrict nw, const double *restrict sw,
                       const double *restrict se, double *restrict to_rest, double *restrict to_east,
                       double *restrict to_north, double *restrict to_west, double *restrict to_south,
                       double *restrict to_ne, double *restrict to_nw, double *restrict to_sw, double *restrict to_se)
{
    for (long x = 0; x < n; x++) {
        const struct cell f = {rest[x], east[x], north[x], west[x], south[x], ne[x], nw[x], sw[x], se[x]};
        const struct cell g = relaxed(f, rate);
        to_rest[x] = g.rest;
        to_east[x] = g.east;
        to_north[x] = g.north;
        to_west[x] = g.west;
        to_south[x] = g.south;
        to_ne[x] = g.ne;
        to_nw[x] = g.nw;
        to_sw[x] = g.sw;
        to_se[x] = g.se;
    }
}

void relax(double *restrict next, const double *restrict now, long n, double rate, long sweeps)
{
    for (long s = 0; s < sweeps; s++, keep_sweeps_apart())
        for (long y = 1; y < n - 1; y++)
            row(n - 2, rate, now + at(n, 1, y, 0), now + at(n, 0, y, 1), now + at(n, 1, y - 1, 2), now + at(n, 2, y, 3),
                now + at(n, 1, y + 1, 4), now + at(n, 0, y - 1, 5), now + at(n, 2, y - 1, 6), now + at(n, 2, y + 1, 7),
                now + at(n, 0, y + 1, 8), next + at(n, 1, y, 0), next + at(n, 1, y, 1), next + at(n, 1, y, 2),
                next + at(n, 1, y, 3), next + at(n, 1, y, 4), next + at(n, 1, y, 5), next + at(n, 1, y, 6),
                next + at(n, 1, y, 7), next + at(n, 1, y, 8));
}
