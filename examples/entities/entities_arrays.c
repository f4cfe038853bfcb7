/* entities.c with an array for the flags and for each component, each by its own name. SPDX-License-Identifier: MIT */
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

/* What has come to the border of its cell turns back. */
#define MOVE(x, v)                                              \
    do {                                                        \
        const float to = (x)[i] + dt * (v)[i];                  \
        (v)[i] = to < 0.0f || to > 1.0f ? -(v)[i] : (v)[i];     \
        (x)[i] = to;                                            \
    } while (0)

/* Moves what moves. */
__attribute__((noinline)) static void integrate_all(const uint32_t *flags, float *x, float *y, float *z, float *vx,
                                                    float *vy, float *vz, long n, long sweeps, float dt)
{
    for (long s = 0; s < sweeps; s++, keep_sweeps_apart())
        for (long i = 0; i < n; i++) {
            if (!(flags[i] & MOVING))
                continue;
            MOVE(x, vx);
            MOVE(y, vy);
            MOVE(z, vz);
        }
}

static void integrate(world e, long n, long sweeps, float dt)
{
    float *const *x = e->position, *const *v = e->velocity;
    integrate_all(e->flags, x[0], x[1], x[2], v[0], v[1], v[2], n, sweeps, dt);
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
