/* particles.c with the fields of the hotspot in a structure of their own. SPDX-License-Identifier: MIT */
#include "../common.h"

struct hot {
    double vx, m, P;
};

struct cold {
    double x, y, z;
    double vy, vz;
    double q, age;
};

__attribute__((noinline)) void update_pressure(struct hot *p, long n, long sweeps, double keep)
{
    for (long s = 0; s < sweeps; s++, keep_sweeps_apart())
        for (long i = 0; i < n; i++)
            p[i].P = keep * p[i].P + p[i].m * p[i].vx * p[i].vx;
}

static void initialise(struct hot *hot, struct cold *cold, long n)
{
    uint64_t seed = 1;
    for (long i = 0; i < n; i++) {
        cold[i].x = next_random(&seed);
        cold[i].y = next_random(&seed);
        cold[i].z = next_random(&seed);
        hot[i].vx = next_random(&seed) - 0.5;
        cold[i].vy = next_random(&seed) - 0.5;
        cold[i].vz = next_random(&seed) - 0.5;
        hot[i].m = 1.0 + next_random(&seed);
        cold[i].q = next_random(&seed) - 0.5;
        cold[i].age = 0.0;
        hot[i].P = 0.0;
    }
}

static struct checksum checksum_of(const struct hot *hot, const struct cold *cold, long n)
{
    struct checksum hash = {0, 0.0};
    for (long i = 0; i < n; i++)
        hash = mix(mix(mix(hash, cold[i].x), cold[i].q), hot[i].P);
    return hash;
}

int main(int argc, char **argv)
{
    const struct options o = read_options(argc, argv, 1300000, 200, 100000, 100000000);
    struct hot *hot = aligned((size_t)o.size, sizeof *hot);
    struct cold *cold = aligned((size_t)o.size, sizeof *cold);
    struct stopwatch w = new_stopwatch(&o);
    initialise(hot, cold, o.size);
    for (long step = 0; step < o.steps; step++) {
        start(&w);
        update_pressure(hot, o.size, o.sweeps, 0.875);
        stop(&w);
    }
    finish(&o, &w, checksum_of(hot, cold, o.size));
    free(hot);
    free(cold);
}
