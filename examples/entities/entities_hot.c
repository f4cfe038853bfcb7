/* entities.c with what moving needs in a structure of its own. SPDX-License-Identifier: MIT */
#include "../common.h"

enum { MOVING = 1 };

struct motion {
    float position[3];
    float velocity[3];
    uint32_t flags;
};

struct rest {
    char name[24];
    float rotation[4];
    int32_t health, owner;
    float cooldown;
    uint64_t mesh, material, script;
};

struct world {
    struct motion *motion;
    struct rest *rest;
};

typedef struct world *world;

/* Moves what moves; what has come to the border of its cell turns back. */
__attribute__((noinline)) void integrate(world all, long n, long sweeps, float dt)
{
    struct motion *e = all->motion;
    for (long s = 0; s < sweeps; s++, keep_sweeps_apart())
        for (long i = 0; i < n; i++) {
            if (!(e[i].flags & MOVING))
                continue;
            for (int k = 0; k < 3; k++) {
                const float to = e[i].position[k] + dt * e[i].velocity[k];
                e[i].velocity[k] = to < 0.0f || to > 1.0f ? -e[i].velocity[k] : e[i].velocity[k];
                e[i].position[k] = to;
            }
        }
}

static world allocate(long n)
{
    world e = checked(malloc(sizeof *e));
    e->motion = aligned((size_t)n, sizeof *e->motion);
    e->rest = checked(calloc((size_t)n, sizeof *e->rest));
    return e;
}

static void put(world e, long i, const float x[3], const float v[3], uint32_t flags)
{
    memcpy(e->motion[i].position, x, sizeof e->motion[i].position);
    memcpy(e->motion[i].velocity, v, sizeof e->motion[i].velocity);
    e->motion[i].flags = flags;
    e->rest[i].health = 100;
}

static float position(world e, long i, int k)
{
    return e->motion[i].position[k];
}

#include "entities.h"
