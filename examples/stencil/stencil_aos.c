/* stencil.c with a structure for each cell. SPDX-License-Identifier: MIT */
#include "../common.h"

struct cell {
    double temperature[2];
    double conductivity;
};

typedef struct cell *grid;

__attribute__((noinline)) void diffuse(grid g, long n, long sweeps, int parity)
{
    for (long s = 0; s < sweeps; s++, keep_sweeps_apart())
        for (long i = 1; i < n - 1; i++)
            for (long j = 1; j < n - 1; j++) {
                struct cell *c = &g[i * n + j];
                const double around = c[-n].temperature[parity] + c[n].temperature[parity] + c[-1].temperature[parity] +
                                      c[1].temperature[parity];
                const double now = c->temperature[parity];
                c->temperature[1 - parity] = now + c->conductivity * (around - 4.0 * now);
            }
}

static grid allocate(long n)
{
    const size_t cells = (size_t)n * (size_t)n;
    return checked(malloc(cells * sizeof(struct cell)));
}

static void put(grid g, long n, long i, long j, double hot, double conductivity)
{
    g[i * n + j] = (struct cell){{hot, hot}, conductivity};
}

static double temperature(grid g, long n, long i, long j, int parity)
{
    return g[i * n + j].temperature[parity];
}

#include "stencil.h"
