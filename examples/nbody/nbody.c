/* Gravity on a block of bodies by all bodies, summed in order: square root and division, not memory. What helps is another
 * loop, over several bodies at a time; see nbody_lanes.c, which keeps this layout. SPDX-License-Identifier: MIT */
#include "../common.h"
#include <math.h>

enum { BLOCK = 64 };

struct state {
    float x[3], v[3], m;
};

struct body {
    float x, y, z;
    float vx, vy, vz;
    float ax, ay, az;
    float m;
};

typedef struct body *bodies;

__attribute__((noinline)) void attract(bodies b, long n, long sweeps, long first, long count, float softening)
{
    for (long s = 0; s < sweeps; s++, keep_sweeps_apart())
        for (long i = first; i < first + count; i++) {
            float ax = 0.0f, ay = 0.0f, az = 0.0f;
            for (long j = 0; j < n; j++) {
                const float dx = b[j].x - b[i].x, dy = b[j].y - b[i].y, dz = b[j].z - b[i].z;
                const float r2 = dx * dx + dy * dy + dz * dz + softening;
                const float pull = b[j].m / (r2 * sqrtf(r2));
                ax += pull * dx;
                ay += pull * dy;
                az += pull * dz;
            }
            b[i].ax = ax;
            b[i].ay = ay;
            b[i].az = az;
        }
}

static bodies allocate(long n)
{
    return checked(calloc((size_t)n, sizeof(struct body)));
}

static void put(bodies b, long i, struct state s)
{
    b[i] = (struct body){s.x[0], s.x[1], s.x[2], s.v[0], s.v[1], s.v[2], 0.0f, 0.0f, 0.0f, s.m};
}

static struct state state_of(bodies b, long i)
{
    return (struct state){{b[i].x, b[i].y, b[i].z}, {b[i].vx, b[i].vy, b[i].vz}, b[i].m};
}

static void kick(bodies b, long i, float dt)
{
    b[i].vx += dt * b[i].ax;
    b[i].vy += dt * b[i].ay;
    b[i].vz += dt * b[i].az;
    b[i].x += dt * b[i].vx;
    b[i].y += dt * b[i].vy;
    b[i].z += dt * b[i].vz;
}

#include "nbody.h"
