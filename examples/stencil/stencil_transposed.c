/* stencil.c with the first index innermost in memory, as another language would have it. SPDX-License-Identifier: MIT */
#include "../common.h"

struct arrays {
    double *temperature[2], *conductivity;
};

typedef struct arrays *grid;

__attribute__((noinline)) void diffuse(grid g, long n, long sweeps, int parity)
{
    const double *now = g->temperature[parity];
    double *next = g->temperature[1 - parity];
    const double *conductivity = g->conductivity;
    for (long s = 0; s < sweeps; s++, keep_sweeps_apart())
        for (long i = 1; i < n - 1; i++)
            for (long j = 1; j < n - 1; j++) {
                const double around = now[j * n + i - 1] + now[j * n + i + 1] + now[(j - 1) * n + i] + now[(j + 1) * n + i];
                next[j * n + i] = now[j * n + i] + conductivity[j * n + i] * (around - 4.0 * now[j * n + i]);
            }
}

static grid allocate(long n)
{
    grid g = checked(malloc(sizeof *g));
    const size_t cells = (size_t)n * (size_t)n;
    for (int k = 0; k < 2; k++)
        g->temperature[k] = checked(malloc(cells * sizeof(double)));
    g->conductivity = checked(malloc(cells * sizeof(double)));
    return g;
}

static void put(grid g, long n, long i, long j, double hot, double conductivity)
{
    g->temperature[0][j * n + i] = g->temperature[1][j * n + i] = hot;
    g->conductivity[j * n + i] = conductivity;
}

static double temperature(grid g, long n, long i, long j, int parity)
{
    return g->temperature[parity][j * n + i];
}

#include "stencil.h"
