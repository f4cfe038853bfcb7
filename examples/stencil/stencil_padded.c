/* stencil.c with rows padded to whole cache lines, an odd number of them, so that neighbours in a column do not share a set.
 * SPDX-License-Identifier: MIT */
#include "../common.h"

struct arrays {
    double *temperature[2], *conductivity;
};

typedef struct arrays *grid;

static long row_of(long n)
{
    return ((n + 7) / 8 | 1) * 8;
}

__attribute__((noinline)) void diffuse(grid g, long n, long sweeps, int parity)
{
    const double *now = g->temperature[parity];
    double *next = g->temperature[1 - parity];
    const double *conductivity = g->conductivity;
    const long row = row_of(n);
    for (long s = 0; s < sweeps; s++, keep_sweeps_apart())
        for (long i = 1; i < n - 1; i++)
            for (long j = 1; j < n - 1; j++) {
                const double around =
                    now[(i - 1) * row + j] + now[(i + 1) * row + j] + now[i * row + j - 1] + now[i * row + j + 1];
                next[i * row + j] = now[i * row + j] + conductivity[i * row + j] * (around - 4.0 * now[i * row + j]);
            }
}

static grid allocate(long n)
{
    grid g = checked(malloc(sizeof *g));
    const size_t cells = (size_t)n * (size_t)row_of(n);
    for (int k = 0; k < 2; k++)
        g->temperature[k] = aligned(cells, sizeof(double));
    g->conductivity = aligned(cells, sizeof(double));
    return g;
}

static void put(grid g, long n, long i, long j, double hot, double conductivity)
{
    const long at = i * row_of(n) + j;
    g->temperature[0][at] = g->temperature[1][at] = hot;
    g->conductivity[at] = conductivity;
}

static double temperature(grid g, long n, long i, long j, int parity)
{
    return g->temperature[parity][i * row_of(n) + j];
}

#include "stencil.h"
