/* A game's entities: everything about one in a structure, of which moving it needs a part. SPDX-License-Identifier: MIT */
#include "../common.h"

enum { MOVING = 1 };

struct entity {
    char name[24];
    float position[3];
    float velocity[3];
    float rotation[4];
    uint32_t flags;
    int32_t health;
    int32_t owner;
    float cooldown;
    uint64_t mesh, material, script;
};

/* Moves what moves; what has come to the border of its cell turns back. */
__attribute__((noinline)) void integrate(struct entity *e, long n, long sweeps, float dt)
{
    for (long s = 0; s < sweeps; s++, keep_sweeps_apart())
        for (long i = 0; i < n; i++) {
            if (!(e[i].flags & MOVING))
                continue;
            for (int k = 0; k < 3; k++) {
                const float x = e[i].position[k] + dt * e[i].velocity[k];
                e[i].velocity[k] = x < 0.0f || x > 1.0f ? -e[i].velocity[k] : e[i].velocity[k];
                e[i].position[k] = x;
            }
        }
}

static void initialise(struct entity *e, long n)
{
    uint64_t seed = 1;
    for (long i = 0; i < n; i++) {
        memset(&e[i], 0, sizeof e[i]);
        for (int k = 0; k < 3; k++) {
            e[i].position[k] = (float)next_random(&seed);
            e[i].velocity[k] = (float)next_random(&seed) - 0.5f;
        }
        e[i].flags = next_random(&seed) < 0.75 ? MOVING : 0;
        e[i].health = 100;
        e[i].mesh = (uint64_t)i;
    }
}

static struct checksum checksum_of(const struct entity *e, long n)
{
    struct checksum hash = {0, 0.0};
    for (long i = 0; i < n; i++)
        for (int k = 0; k < 3; k++)
            hash = mix(mix(hash, (double)e[i].position[k]), (double)e[i].velocity[k]);
    return hash;
}

int main(int argc, char **argv)
{
    const struct options o = read_options(argc, argv, 400000, 200, 40000, 100000000);
    struct entity *e = checked(malloc((size_t)o.size * sizeof *e));
    struct stopwatch w = new_stopwatch(&o);
    initialise(e, o.size);
    for (long step = 0; step < o.steps; step++) {
        start(&w);
        integrate(e, o.size, o.sweeps, 0.0625f);
        stop(&w);
    }
    finish(&o, &w, checksum_of(e, o.size));
    free(e);
}
