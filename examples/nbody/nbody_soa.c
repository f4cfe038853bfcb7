/* nbody.c with an array for each number of a body. SPDX-License-Identifier: MIT */
#include "../common.h"
#include <math.h>

enum { BLOCK = 64 };

struct state {
    float x[3], v[3], m;
};

struct arrays {
    float *x, *y, *z;
    float *vx, *vy, *vz;
    float *ax, *ay, *az;
    float *m;
};

typedef struct arrays *bodies;

__attribute__((noinline)) void attract(bodies b, long n, long sweeps, long first, long count, float softening)
{
    const float *x = b->x, *y = b->y, *z = b->z, *m = b->m;
    for (long s = 0; s < sweeps; s++, keep_sweeps_apart())
        for (long i = first; i < first + count; i++) {
            float ax = 0.0f, ay = 0.0f, az = 0.0f;
            for (long j = 0; j < n; j++) {
                const float dx = x[j] - x[i], dy = y[j] - y[i], dz = z[j] - z[i];
                const float r2 = dx * dx + dy * dy + dz * dz + softening;
                const float pull = m[j] / (r2 * sqrtf(r2));
                ax += pull * dx;
                ay += pull * dy;
                az += pull * dz;
            }
            b->ax[i] = ax;
            b->ay[i] = ay;
            b->az[i] = az;
        }
}

static bodies allocate(long n)
{
    bodies b = checked(malloc(sizeof *b));
    float **arrays[] = {&b->x, &b->y, &b->z, &b->vx, &b->vy, &b->vz, &b->ax, &b->ay, &b->az, &b->m};
    for (size_t k = 0; k < sizeof arrays / sizeof *arrays; k++)
        *arrays[k] = aligned((size_t)n, sizeof(float));
    return b;
}

static void put(bodies b, long i, struct state s)
{
    b->x[i] = s.x[0];
    b->y[i] = s.x[1];
    b->z[i] = s.x[2];
    b->vx[i] = s.v[0];
    b->vy[i] = s.v[1];
    b->vz[i] = s.v[2];
    b->m[i] = s.m;
}

static struct state state_of(bodies b, long i)
{
    return (struct state){{b->x[i], b->y[i], b->z[i]}, {b->vx[i], b->vy[i], b->vz[i]}, b->m[i]};
}

static void kick(bodies b, long i, float dt)
{
    b->vx[i] += dt * b->ax[i];
    b->vy[i] += dt * b->ay[i];
    b->vz[i] += dt * b->az[i];
    b->x[i] += dt * b->vx[i];
    b->y[i] += dt * b->vy[i];
    b->z[i] += dt * b->vz[i];
}

#include "nbody.h"
