/* drift.c with the same layout and, in every call, a copy of what it uses as arrays, of which the positions are copied back.
 * SPDX-License-Identifier: MIT */
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
    double *view = aligned(6 * (size_t)n, sizeof *view);
    double *x = view, *y = x + n, *z = y + n, *vx = z + n, *vy = vx + n, *vz = vy + n;
    for (long s = 0; s < sweeps; s++, keep_sweeps_apart()) {
        for (long i = 0; i < n; i++) {
            x[i] = p[i].x;
            y[i] = p[i].y;
            z[i] = p[i].z;
            vx[i] = p[i].vx;
            vy[i] = p[i].vy;
            vz[i] = p[i].vz;
        }
        for (long i = 0; i < n; i++) {
            x[i] += dt * vx[i];
            y[i] += dt * vy[i];
            z[i] += dt * vz[i];
        }
        for (long i = 0; i < n; i++) {
            p[i].x = x[i];
            p[i].y = y[i];
            p[i].z = z[i];
        }
    }
    free(view);
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
