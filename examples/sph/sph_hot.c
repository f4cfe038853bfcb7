/* sph.c with what the density needs in a structure of its own, and the density in another.
 * SPDX-License-Identifier: MIT */
#include "../common.h"

enum { MOST = 96 };

struct lists {
    int *first; /* of each particle in `neighbour`, and one more */
    int *neighbour;
};

struct seen {
    double x[3], m;
};

struct rest {
    int64_t id, kind;
    double v[3], a[3];
    double h, rho, u, p, sound, dt;
};

struct fluid {
    struct seen *seen;
    struct rest *rest;
};

typedef struct fluid *particles;

__attribute__((noinline)) void density(particles p, const struct lists *l, long n, long sweeps, double h)
{
    const int *first = l->first, *neighbour = l->neighbour;
    const double h2 = h * h, scale = 1.5666814710608448 / (h * h2 * h2 * h2 * h2);
    const struct seen *seen = p->seen;
    struct rest *rest = p->rest;
    for (long s = 0; s < sweeps; s++, keep_sweeps_apart())
        for (long i = 0; i < n; i++) {
            double rho = 0.0;
            for (long k = first[i]; k < first[i + 1]; k++) {
                const struct seen *q = &seen[neighbour[k]];
                const double dx = q->x[0] - seen[i].x[0], dy = q->x[1] - seen[i].x[1], dz = q->x[2] - seen[i].x[2];
                const double left = h2 - (dx * dx + dy * dy + dz * dz);
                const double inside = left > 0.0 ? left : 0.0;
                rho += q->m * (inside * inside * inside);
            }
            rest[i].rho = scale * rho;
        }
}

static particles allocate(long n)
{
    particles p = checked(malloc(sizeof *p));
    p->seen = aligned((size_t)n, sizeof *p->seen);
    p->rest = checked(calloc((size_t)n, sizeof *p->rest));
    return p;
}

static void put(particles p, long i, const double x[3], double m)
{
    p->rest[i].id = i;
    memcpy(p->seen[i].x, x, sizeof p->seen[i].x);
    p->seen[i].m = m;
}

static void nudge(particles p, long i, double by)
{
    p->seen[i].x[i % 3] += by;
}

static double density_of(particles p, long i)
{
    return p->rest[i].rho;
}

#include "sph.h"
