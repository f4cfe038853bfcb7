/* nbody.c with the same layout and another loop: eight bodies at a time, each of whose sums keeps its order.
 * SPDX-License-Identifier: MIT */
#include "../common.h"
#include <math.h>

enum { BLOCK = 64, LANES = 8 };

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

/* `count` is a multiple of the lanes. */
__attribute__((noinline)) void attract(bodies b, long n, long sweeps, long first, long count, float softening)
{
    for (long s = 0; s < sweeps; s++, keep_sweeps_apart())
        for (long i = first; i < first + count; i += LANES) {
            float x[LANES], y[LANES], z[LANES], ax[LANES] = {0.0f}, ay[LANES] = {0.0f}, az[LANES] = {0.0f};
            for (int l = 0; l < LANES; l++) {
                x[l] = b[i + l].x;
                y[l] = b[i + l].y;
                z[l] = b[i + l].z;
            }
            for (long j = 0; j < n; j++)
                for (int l = 0; l < LANES; l++) {
                    const float dx = b[j].x - x[l], dy = b[j].y - y[l], dz = b[j].z - z[l];
                    const float r2 = dx * dx + dy * dy + dz * dz + softening;
                    const float pull = b[j].m / (r2 * sqrtf(r2));
                    ax[l] += pull * dx;
                    ay[l] += pull * dy;
                    az[l] += pull * dz;
                }
            for (int l = 0; l < LANES; l++) {
                b[i + l].ax = ax[l];
                b[i + l].ay = ay[l];
                b[i + l].az = az[l];
            }
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
