/* lbm.c with the rest and the straight directions in one array of structures and the diagonal ones in another one, which are
 * promised not to overlap. SPDX-License-Identifier: MIT */
#define OWN_RELAX
#include "../common.h"

static inline size_t at(long n, long x, long y, int q)
{
    return (size_t)(q < 5 ? 5 * (y * n + x) + q : 5 * n * n + 4 * (y * n + x) + q - 5);
}

#include "lbm.h"

struct straight {
    double rest, east, north, west, south;
};

struct diagonal {
    double ne, nw, sw, se;
};

/* A row of `n` cells; each pointer is at the first cell that is read or written there. */
static inline void row(long n, double rate, struct straight *restrict to, struct diagonal *restrict to_diagonal,
                       const struct straight *restrict here, const struct straight *restrict above,
                       const struct straight *restrict below, const struct diagonal *restrict diagonal_above,
                       const struct diagonal *restrict diagonal_below)
{
    for (long x = 0; x < n; x++) {
        const struct cell f = {
            .rest = here[x].rest,
            .east = here[x - 1].east,
            .north = above[x].north,
            .west = here[x + 1].west,
            .south = below[x].south,
            .ne = diagonal_above[x - 1].ne,
            .nw = diagonal_above[x + 1].nw,
            .sw = diagonal_below[x + 1].sw,
            .se = diagonal_below[x - 1].se,
        };
        const struct cell g = relaxed(f, rate);
        to[x] = (struct straight){g.rest, g.east, g.north, g.west, g.south};
        to_diagonal[x] = (struct diagonal){g.ne, g.nw, g.sw, g.se};
    }
}

void relax(double *restrict next, const double *restrict now, long n, double rate, long sweeps)
{
    struct straight *to = (struct straight *)next;
    struct diagonal *to_diagonal = (struct diagonal *)(next + 5 * n * n);
    const struct straight *from = (const struct straight *)now;
    const struct diagonal *from_diagonal = (const struct diagonal *)(now + 5 * n * n);

    for (long s = 0; s < sweeps; s++, keep_sweeps_apart())
        for (long y = 1; y < n - 1; y++) {
            const long first = y * n + 1;
            row(n - 2, rate, to + first, to_diagonal + first, from + first, from + first - n, from + first + n,
                from_diagonal + first - n, from_diagonal + first + n);
        }
}
