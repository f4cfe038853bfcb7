/* sph.c with the same layout and, in every call, a copy of what it reads: position and mass side by side.
 * SPDX-License-Identifier: MIT */
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

struct seen {
    double x, y, z, m;
};

__attribute__((noinline)) void density(particles p, const struct lists *l, long n, long sweeps, double h)
{
    const int *first = l->first, *neighbour = l->neighbour;
    const double h2 = h * h, scale = 1.5666814710608448 / (h * h2 * h2 * h2 * h2);
    struct seen *view = aligned((size_t)n, sizeof *view);
    for (long s = 0; s < sweeps; s++, keep_sweeps_apart()) {
        for (long i = 0; i < n; i++)
            view[i] = (struct seen){p[i].x[0], p[i].x[1], p[i].x[2], p[i].m};
        for (long i = 0; i < n; i++) {
            double rho = 0.0;
            for (long k = first[i]; k < first[i + 1]; k++) {
                const struct seen *q = &view[neighbour[k]];
                const double dx = q->x - view[i].x, dy = q->y - view[i].y, dz = q->z - view[i].z;
                const double left = h2 - (dx * dx + dy * dy + dz * dz);
                const double inside = left > 0.0 ? left : 0.0;
                rho += q->m * (inside * inside * inside);
            }
            p[i].rho = scale * rho;
        }
    }
    free(view);
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
