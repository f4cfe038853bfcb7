/* drift.c with an array for each number that it uses. SPDX-License-Identifier: MIT */
#include "../common.h"

struct rest {
    int64_t id, kind;
    double ax, ay, az;
    double m, h, rho, u, p, sound, dt;
};

struct fluid {
    double *x, *y, *z;
    double *vx, *vy, *vz;
    struct rest *rest;
};

typedef struct fluid *particles;

__attribute__((noinline)) void drift(particles p, long n, long sweeps, double dt)
{
    double *x = p->x, *y = p->y, *z = p->z;
    const double *vx = p->vx, *vy = p->vy, *vz = p->vz;
    for (long s = 0; s < sweeps; s++, keep_sweeps_apart())
        for (long i = 0; i < n; i++) {
            x[i] += dt * vx[i];
            y[i] += dt * vy[i];
            z[i] += dt * vz[i];
        }
}

static particles allocate(long n)
{
    particles p = checked(malloc(sizeof *p));
    double **arrays[] = {&p->x, &p->y, &p->z, &p->vx, &p->vy, &p->vz};
    for (size_t k = 0; k < sizeof arrays / sizeof *arrays; k++)
        *arrays[k] = aligned((size_t)n, sizeof(double));
    p->rest = checked(calloc((size_t)n, sizeof *p->rest));
    return p;
}

static void put(particles p, long i, int k, double x, double v)
{
    double *const position[] = {p->x, p->y, p->z}, *const velocity[] = {p->vx, p->vy, p->vz};
    position[k][i] = x;
    velocity[k][i] = v;
}

static double coordinate(particles p, long i, int k)
{
    double *const position[] = {p->x, p->y, p->z};
    return position[k][i];
}

#include "drift.h"
