/* sph.c with an array for each number that the density needs.
 * SPDX-License-Identifier: MIT */
#include "../common.h"

enum { MOST = 96 };

struct lists {
    int *first; /* of each particle in `neighbour`, and one more */
    int *neighbour;
};

struct rest {
    int64_t id, kind;
    double v[3], a[3];
    double h, u, p, sound, dt;
};

struct fluid {
    double *x[3], *m, *rho;
    struct rest *rest;
};

typedef struct fluid *particles;

__attribute__((noinline)) void density(particles p, const struct lists *l, long n, long sweeps, double h)
{
    const int *first = l->first, *neighbour = l->neighbour;
    const double h2 = h * h, scale = 1.5666814710608448 / (h * h2 * h2 * h2 * h2);
    const double *x = p->x[0], *y = p->x[1], *z = p->x[2], *m = p->m;
    double *density = p->rho;
    for (long s = 0; s < sweeps; s++, keep_sweeps_apart())
        for (long i = 0; i < n; i++) {
            double rho = 0.0;
            for (long k = first[i]; k < first[i + 1]; k++) {
                const long q = neighbour[k];
                const double dx = x[q] - x[i], dy = y[q] - y[i], dz = z[q] - z[i];
                const double left = h2 - (dx * dx + dy * dy + dz * dz);
                const double inside = left > 0.0 ? left : 0.0;
                rho += m[q] * (inside * inside * inside);
            }
            density[i] = scale * rho;
        }
}

static particles allocate(long n)
{
    particles p = checked(malloc(sizeof *p));
    for (int k = 0; k < 3; k++)
        p->x[k] = aligned((size_t)n, sizeof(double));
    p->m = aligned((size_t)n, sizeof(double));
    p->rho = aligned((size_t)n, sizeof(double));
    p->rest = checked(calloc((size_t)n, sizeof *p->rest));
    return p;
}

static void put(particles p, long i, const double x[3], double m)
{
    p->rest[i].id = i;
    for (int k = 0; k < 3; k++)
        p->x[k][i] = x[k];
    p->m[i] = m;
}

static void nudge(particles p, long i, double by)
{
    p->x[i % 3][i] += by;
}

static double density_of(particles p, long i)
{
    return p->rho[i];
}

#include "sph.h"
