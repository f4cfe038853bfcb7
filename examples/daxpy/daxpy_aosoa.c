/* daxpy.c with x and y interleaved in blocks of four: one AVX2 register of doubles each. SPDX-License-Identifier: MIT */
#include "../common.h"

#define LANES 4

struct block {
    double x[LANES], y[LANES];
};

/* The last block may be partly empty; its unused lanes are computed and never looked at. */
__attribute__((noinline)) void daxpy(struct block *p, long blocks, long sweeps, double a)
{
    for (long s = 0; s < sweeps; s++, keep_sweeps_apart())
        for (long b = 0; b < blocks; b++)
            for (int l = 0; l < LANES; l++)
                p[b].y[l] += a * p[b].x[l];
}

int main(int argc, char **argv)
{
    const struct options o = read_options(argc, argv, 4000000, 400, 200000, 400000000);
    const long blocks = (o.size + LANES - 1) / LANES;
    struct block *p = memset(aligned((size_t)blocks, sizeof *p), 0, (size_t)blocks * sizeof *p);
    struct stopwatch w = new_stopwatch(&o);
    struct checksum hash = {0, 0.0};
    uint64_t seed = 1;
    for (long i = 0; i < o.size; i++) {
        p[i / LANES].x[i % LANES] = next_random(&seed);
        p[i / LANES].y[i % LANES] = next_random(&seed);
    }
    for (long step = 0; step < o.steps; step++) {
        start(&w);
        daxpy(p, blocks, o.sweeps, 0.375);
        stop(&w);
    }
    for (long i = 0; i < o.size; i++)
        hash = mix(hash, p[i / LANES].y[i % LANES]);
    finish(&o, &w, hash);
    free(p);
}
