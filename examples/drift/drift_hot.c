/* drift.c with position and velocity in a structure of their own. SPDX-License-Identifier: MIT */
#include "../common.h"

struct flight {
    double x, y, z;
    double vx, vy, vz;
};

struct rest {
    int64_t id, kind;
    double ax, ay, az;
    double m, h, rho, u, p, sound, dt;
};

struct fluid {
    struct flight *flight;
    struct rest *rest;
};

typedef struct fluid *particles;

__attribute__((noinline)) void drift(particles all, long n, long sweeps, double dt)
{
    struct flight *p = all->flight;
    for (long s = 0; s < sweeps; s++, keep_sweeps_apart())
        for (long i = 0; i < n; i++) {
            p[i].x += dt * p[i].vx;
            p[i].y += dt * p[i].vy;
            p[i].z += dt * p[i].vz;
        }
}

static particles allocate(long n)
{
    particles p = checked(malloc(sizeof *p));
    p->flight = aligned((size_t)n, sizeof *p->flight);
    p->rest = checked(calloc((size_t)n, sizeof *p->rest));
    return p;
}

static void put(particles p, long i, int k, double x, double v)
{
    struct flight *f = &p->flight[i];
    double *const position[] = {&f->x, &f->y, &f->z}, *const velocity[] = {&f->vx, &f->vy, &f->vz};
    *position[k] = x;
    *velocity[k] = v;
}

static double coordinate(particles p, long i, int k)
{
    const struct flight f = p->flight[i];
    return k == 0 ? f.x : k == 1 ? f.y : f.z;
}

#include "drift.h"
