/* Density of a fluid of particles: each adds up the masses of its neighbours, weighted by distance. A neighbour is
 * anywhere in memory, and it is visited some forty times in a call: a copy of the four numbers that are read pays within
 * one call. SPDX-License-Identifier: MIT */
#include "../common.h"

enum { MOST = 96 };

struct lists {
    int *first; /* of each particle in `neighbour`, and one more */
    int *neighbour;
};

struct particle {
    int64_t id, kind;
    double x[3], v[3], a[3];
    double m, h, rho, u, p, sound, dt;
};

typedef struct particle *particles;

__attribute__((noinline)) void density(particles p, const struct lists *l, long n, long sweeps, double h)
{
    const int *first = l->first, *neighbour = l->neighbour;
    const double h2 = h * h, scale = 1.5666814710608448 / (h * h2 * h2 * h2 * h2);
    for (long s = 0; s < sweeps; s++, keep_sweeps_apart())
        for (long i = 0; i < n; i++) {
            double rho = 0.0;
            for (long k = first[i]; k < first[i + 1]; k++) {
                const struct particle *q = &p[neighbour[k]];
                const double dx = q->x[0] - p[i].x[0], dy = q->x[1] - p[i].x[1], dz = q->x[2] - p[i].x[2];
                const double left = h2 - (dx * dx + dy * dy + dz * dz);
                const double inside = left > 0.0 ? left : 0.0;
                rho += q->m * (inside * inside * inside);
            }
            p[i].rho = scale * rho;
        }
}

static particles allocate(long n)
{
    return checked(calloc((size_t)n, sizeof(struct particle)));
}

static void put(particles p, long i, const double x[3], double m)
{
    p[i].id = i;
    memcpy(p[i].x, x, sizeof p[i].x);
    p[i].m = m;
}

static void nudge(particles p, long i, double by)
{
    p[i].x[i % 3] += by;
}

static double density_of(particles p, long i)
{
    return p[i].rho;
}

#include "sph.h"
