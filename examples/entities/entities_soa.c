/* entities.c with an array for the flags and for each component. SPDX-License-Identifier: MIT */
#include "../common.h"

enum { MOVING = 1 };

struct rest {
    char name[24];
    float rotation[4];
    int32_t health, owner;
    float cooldown;
    uint64_t mesh, material, script;
};

struct world {
    uint32_t *flags;
    float *position[3], *velocity[3];
    struct rest *rest;
};

typedef struct world *world;

/* Moves what moves; what has come to the border of its cell turns back. */
__attribute__((noinline)) void integrate(world e, long n, long sweeps, float dt)
{
    const uint32_t *flags = e->flags;
    float *const x[] = {e->position[0], e->position[1], e->position[2]};
    float *const v[] = {e->velocity[0], e->velocity[1], e->velocity[2]};
    for (long s = 0; s < sweeps; s++, keep_sweeps_apart())
        for (long i = 0; i < n; i++) {
            if (!(flags[i] & MOVING))
                continue;
            for (int k = 0; k < 3; k++) {
                const float to = x[k][i] + dt * v[k][i];
                v[k][i] = to < 0.0f || to > 1.0f ? -v[k][i] : v[k][i];
                x[k][i] = to;
            }
        }
}

static world allocate(long n)
{
    world e = checked(malloc(sizeof *e));
    e->flags = aligned((size_t)n, sizeof *e->flags);
    for (int k = 0; k < 3; k++) {
        e->position[k] = aligned((size_t)n, sizeof(float));
        e->velocity[k] = aligned((size_t)n, sizeof(float));
    }
    e->rest = checked(calloc((size_t)n, sizeof *e->rest));
    return e;
}

static void put(world e, long i, const float x[3], const float v[3], uint32_t flags)
{
    for (int k = 0; k < 3; k++) {
        e->position[k][i] = x[k];
        e->velocity[k][i] = v[k];
    }
    e->flags[i] = flags;
    e->rest[i].health = 100;
}

static float position(world e, long i, int k)
{
    return e->position[k][i];
}

#include "entities.h"
