/* particles.c in blocks of four: one AVX2 register of doubles for each field. SPDX-License-Identifier: MIT */
#include "../common.h"

#define LANES 4

struct block {
    double x[LANES], y[LANES], z[LANES];
    double vx[LANES], vy[LANES], vz[LANES];
    double m[LANES], q[LANES], age[LANES];
    double P[LANES];
};

/* The last block may be partly empty; its unused lanes are computed and never looked at. */
__attribute__((noinline)) void update_pressure(struct block *p, long blocks, long sweeps, double keep)
{
    for (long s = 0; s < sweeps; s++, keep_sweeps_apart())
        for (long b = 0; b < blocks; b++)
            for (int l = 0; l < LANES; l++)
                p[b].P[l] = keep * p[b].P[l] + p[b].m[l] * p[b].vx[l] * p[b].vx[l];
}

static void initialise(struct block *p, long n)
{
    uint64_t seed = 1;
    for (long i = 0; i < n; i++) {
        struct block *b = &p[i / LANES];
        const long l = i % LANES;
        b->x[l] = next_random(&seed);
        b->y[l] = next_random(&seed);
        b->z[l] = next_random(&seed);
        b->vx[l] = next_random(&seed) - 0.5;
        b->vy[l] = next_random(&seed) - 0.5;
        b->vz[l] = next_random(&seed) - 0.5;
        b->m[l] = 1.0 + next_random(&seed);
        b->q[l] = next_random(&seed) - 0.5;
        b->age[l] = 0.0;
        b->P[l] = 0.0;
    }
}

static struct checksum checksum_of(const struct block *p, long n)
{
    struct checksum hash = {0, 0.0};
    for (long i = 0; i < n; i++) {
        const struct block *b = &p[i / LANES];
        hash = mix(mix(mix(hash, b->x[i % LANES]), b->q[i % LANES]), b->P[i % LANES]);
    }
    return hash;
}

int main(int argc, char **argv)
{
    const struct options o = read_options(argc, argv, 1300000, 200, 100000, 100000000);
    const long blocks = (o.size + LANES - 1) / LANES;
    struct block *p = aligned((size_t)blocks, sizeof *p);
    struct stopwatch w = new_stopwatch(&o);
    memset(p, 0, (size_t)blocks * sizeof *p);
    initialise(p, o.size);
    for (long step = 0; step < o.steps; step++) {
        start(&w);
        update_pressure(p, blocks, o.sweeps, 0.875);
        stop(&w);
    }
    finish(&o, &w, checksum_of(p, o.size));
    free(p);
}
