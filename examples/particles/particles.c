/* An array of structures of ten doubles; the hotspot uses three of them. SPDX-License-Identifier: MIT */
#include "../common.h"

struct particle {
    double x, y, z;
    double vx, vy, vz;
    double m, q, age;
    double P;
};

/* Momentum flux along x, averaged over time. */
__attribute__((noinline)) void update_pressure(struct particle *p, long n, long sweeps, double keep)
{
    for (long s = 0; s < sweeps; s++, keep_sweeps_apart())
        for (long i = 0; i < n; i++)
            p[i].P = keep * p[i].P + p[i].m * p[i].vx * p[i].vx;
}

static void initialise(struct particle *p, long n)
{
    uint64_t seed = 1;
    for (long i = 0; i < n; i++) {
        p[i].x = next_random(&seed);
        p[i].y = next_random(&seed);
        p[i].z = next_random(&seed);
        p[i].vx = next_random(&seed) - 0.5;
        p[i].vy = next_random(&seed) - 0.5;
        p[i].vz = next_random(&seed) - 0.5;
        p[i].m = 1.0 + next_random(&seed);
        p[i].q = next_random(&seed) - 0.5;
        p[i].age = 0.0;
        p[i].P = 0.0;
    }
}

static struct checksum checksum_of(const struct particle *p, long n)
{
    struct checksum hash = {0, 0.0};
    for (long i = 0; i < n; i++)
        hash = mix(mix(mix(hash, p[i].x), p[i].q), p[i].P);
    return hash;
}

int main(int argc, char **argv)
{
    const struct options o = read_options(argc, argv, 1300000, 200, 100000, 100000000);
    struct particle *p = checked(malloc((size_t)o.size * sizeof *p));
    struct stopwatch w = new_stopwatch(&o);
    initialise(p, o.size);
    for (long step = 0; step < o.steps; step++) {
        start(&w);
        update_pressure(p, o.size, o.sweeps, 0.875);
        stop(&w);
    }
    finish(&o, &w, checksum_of(p, o.size));
    free(p);
}
