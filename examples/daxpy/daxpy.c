/* y += a * x over two arrays: no layout is better than this one. SPDX-License-Identifier: MIT */
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
    double *x = checked(malloc((size_t)o.size * sizeof *x));
    double *y = checked(malloc((size_t)o.size * sizeof *y));
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
    free(y);
}
