/* A game's entities: everything about one in a structure, of which moving it needs a part. SPDX-License-Identifier: MIT */
#include "../common.h"

enum { MOVING = 1 };

struct entity {
    char name[24];
    float position[3];
    float velocity[3];
    float rotation[4];
    uint32_t flags;
    int32_t health, owner;
    float cooldown;
    uint64_t mesh, material, script;
};

typedef struct entity *world;

/* Moves what moves; what has come to the border of its cell turns back. */
__attribute__((noinline)) void integrate(world e, long n, long sweeps, float dt)
{
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
    return checked(calloc((size_t)n, sizeof(struct entity)));
}

static void put(world e, long i, const float x[3], const float v[3], uint32_t flags)
{
    memcpy(e[i].position, x, sizeof e[i].position);
    memcpy(e[i].velocity, v, sizeof e[i].velocity);
    e[i].flags = flags;
    e[i].health = 100;
}

static float position(world e, long i, int k)
{
    return e[i].position[k];
}

#include "entities.h"
