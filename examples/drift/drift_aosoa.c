/* drift.c with position and velocity in blocks of four: one AVX2 register of doubles for each number.
 * SPDX-License-Identifier: MIT */
#include "../common.h"

enum { LANES = 4 };

struct block {
    double x[3][LANES], v[3][LANES];
};

struct rest {
    int64_t id, kind;
    double ax, ay, az;
    double m, h, rho, u, p, sound, dt;
};

struct fluid {
    struct block *block;
    struct rest *rest;
};

typedef struct fluid *particles;

/* The last block may be partly empty; its unused lanes are computed and never looked at. */
__attribute__((noinline)) void drift(particles all, long n, long sweeps, double dt)
{
    struct block *p = all->block;
    for (long s = 0; s < sweeps; s++, keep_sweeps_apart())
        for (long b = 0; b < (n + LANES - 1) / LANES; b++)
            for (int k = 0; k < 3; k++)
                for (int l = 0; l < LANES; l++)
                    p[b].x[k][l] += dt * p[b].v[k][l];
}

static particles allocate(long n)
{
    const size_t blocks = (size_t)(n + LANES - 1) / LANES;
    particles p = checked(malloc(sizeof *p));
    p->block = memset(aligned(blocks, sizeof *p->block), 0, blocks * sizeof *p->block);
    p->rest = checked(calloc((size_t)n, sizeof *p->rest));
    return p;
}

static void put(particles p, long i, int k, double x, double v)
{
    p->block[i / LANES].x[k][i % LANES] = x;
    p->block[i / LANES].v[k][i % LANES] = v;
}

static double coordinate(particles p, long i, int k)
{
    return p->block[i / LANES].x[k][i % LANES];
}

#include "drift.h"
