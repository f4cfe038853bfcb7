/* entities.c with what moving needs in blocks of 4 entities. Written when the tool had advised that (1.3 times). SPDX-License-Identifier: MIT */
#include "../common.h"

enum { MOVING = 1 };

#define LANES 4

struct motion {
    float position[3][LANES];
    float velocity[3][LANES];
    uint32_t flags[LANES];
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
    const long blocks = (n + LANES - 1) / LANES; /* what the last one has too many does not move */
    for (long s = 0; s < sweeps; s++, keep_sweeps_apart())
        for (long i = 0; i < blocks; i++)
            for (int lane = 0; lane < LANES; lane++) {
                if (!(e[i].flags[lane] & MOVING))
                    continue;
                for (int k = 0; k < 3; k++) {
                    const float to = e[i].position[k][lane] + dt * e[i].velocity[k][lane];
                    const float v = e[i].velocity[k][lane];
                    e[i].velocity[k][lane] = to < 0.0f || to > 1.0f ? -v : v;
                    e[i].position[k][lane] = to;
                }
            }
}

static world allocate(long n)
{
    world e = checked(malloc(sizeof *e));
    const size_t blocks = ((size_t)n + LANES - 1) / LANES;
    e->motion = aligned(blocks, sizeof *e->motion);
    memset(e->motion, 0, blocks * sizeof *e->motion);
    e->rest = checked(calloc((size_t)n, sizeof *e->rest));
    return e;
}

static void put(world e, long i, const float x[3], const float v[3], uint32_t flags)
{
    struct motion *block = &e->motion[i / LANES];
    for (int k = 0; k < 3; k++) {
        block->position[k][i % LANES] = x[k];
        block->velocity[k][i % LANES] = v[k];
    }
    block->flags[i % LANES] = flags;
    e->rest[i].health = 100;
}

static float position(world e, long i, int k)
{
    return e->motion[i / LANES].position[k][i % LANES];
}

#include "entities.h"
