/* nbody.c with position, mass and acceleration in a structure of their own. SPDX-License-Identifier: MIT */
#include "../common.h"
#include <math.h>

enum { BLOCK = 64 };

struct state {
    float x[3], v[3], m;
};

struct hot {
    float x, y, z;
    float ax, ay, az;
    float m;
};

struct velocity {
    float x, y, z;
};

struct cluster {
    struct hot *hot;
    struct velocity *v;
};

typedef struct cluster *bodies;

__attribute__((noinline)) void attract(bodies all, long n, long sweeps, long first, long count, float softening)
{
    struct hot *b = all->hot;
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
    bodies b = checked(malloc(sizeof *b));
    b->hot = aligned((size_t)n, sizeof *b->hot);
    b->v = aligned((size_t)n, sizeof *b->v);
    return b;
}

static void put(bodies b, long i, struct state s)
{
    b->hot[i] = (struct hot){s.x[0], s.x[1], s.x[2], 0.0f, 0.0f, 0.0f, s.m};
    b->v[i] = (struct velocity){s.v[0], s.v[1], s.v[2]};
}

static struct state state_of(bodies b, long i)
{
    const struct hot h = b->hot[i];
    const struct velocity v = b->v[i];
    return (struct state){{h.x, h.y, h.z}, {v.x, v.y, v.z}, h.m};
}

static void kick(bodies b, long i, float dt)
{
    struct hot *h = &b->hot[i];
    struct velocity *v = &b->v[i];
    v->x += dt * h->ax;
    v->y += dt * h->ay;
    v->z += dt * h->az;
    h->x += dt * v->x;
    h->y += dt * v->y;
    h->z += dt * v->z;
}

#include "nbody.h"
