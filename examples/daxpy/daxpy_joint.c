/* daxpy.c with both arrays in one block, y an odd number of cache lines behind x, so that their lines share no set.
 * SPDX-License-Identifier: MIT */
#include "../common.h"

__attribute__((noinline)) void daxpy(double *y, const double *x, long n, long sweeps, double a)
{
    for (long s = 0; s < sweeps; s++, keep_sweeps_apart())
        for (long i = 0; i < n; i++)
            y[i] += a * x[i];
}

int main(int argc, char **argv)
{
    const struct options o = read_options(argc, argv, 4000000, 400, 200000, 400000000);
    const long apart = ((o.size + 7) / 8 | 1) * 8;
    double *x = aligned((size_t)(apart + o.size), sizeof *x), *y = x + apart;
    struct stopwatch w = new_stopwatch(&o);
    struct checksum hash = {0, 0.0};
    uint64_t seed = 1;
    for (long i = 0; i < o.size; i++) {
        x[i] = next_random(&seed);
        y[i] = next_random(&seed);
    }
    for (long step = 0; step < o.steps; step++) {
        start(&w);
        daxpy(y, x, o.size, o.sweeps, 0.375);
        stop(&w);
    }
    for (long i = 0; i < o.size; i++)
        hash = mix(hash, y[i]);
    finish(&o, &w, hash);
    free(x);
}
