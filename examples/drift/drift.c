/* Particles of many fields fly on along their velocities. Each is visited once: another layout pays if it is there for good,
 * not if every call has to make it first. SPDX-License-Identifier: MIT */
#include "../common.h"

struct particle {
    int64_t id, kind;
    double x, y, z;
    double vx, vy, vz;
    double ax, ay, az;
    double m, h, rho, u, p, sound, dt;
};

typedef struct particle *particles;

__attribute__((noinline)) void drift(particles p, long n, long sweeps, double dt)
{
    for (long s = 0; s < sweeps; s++, keep_sweeps_apart())
        for (long i = 0; i < n; i++) {
            p[i].x += dt * p[i].vx;
            p[i].y += dt * p[i].vy;
            p[i].z += dt * p[i].vz;
        }
}

static particles allocate(long n)
{
    return checked(calloc((size_t)n, sizeof(struct particle)));
}

static void put(particles p, long i, int k, double x, double v)
{
    double *const position[] = {&p[i].x, &p[i].y, &p[i].z}, *const velocity[] = {&p[i].vx, &p[i].vy, &p[i].vz};
    *position[k] = x;
    *velocity[k] = v;
}

static double coordinate(particles p, long i, int k)
{
    return k == 0 ? p[i].x : k == 1 ? p[i].y : p[i].z;
}

#include "drift.h"
