/* daxpy.c with x and y interleaved. SPDX-License-Identifier: MIT */
#include "../common.h"

struct pair {
    double x, y;
};

__attribute__((noinline)) void daxpy(struct pair *p, long n, long sweeps, double a)
{
    for (long s = 0; s < sweeps; s++, keep_sweeps_apart())
        for (long i = 0; i < n; i++)
            p[i].y += a * p[i].x;
}

int main(int argc, char **argv)
{
    const struct options o = read_options(argc, argv, 4000000, 400, 200000, 400000000);
    struct pair *p = aligned((size_t)o.size, sizeof *p);
    struct stopwatch w = new_stopwatch(&o);
    struct checksum hash = {0, 0.0};
    uint64_t seed = 1;
    for (long i = 0; i < o.size; i++) {
        p[i].x = next_random(&seed);
        p[i].y = next_random(&seed);
    }
    for (long step = 0; step < o.steps; step++) {
        start(&w);
        daxpy(p, o.size, o.sweeps, 0.375);
        stop(&w);
    }
    for (long i = 0; i < o.size; i++)
        hash = mix(hash, p[i].y);
    finish(&o, &w, hash);
    free(p);
}
