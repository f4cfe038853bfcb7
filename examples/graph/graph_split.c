/* graph.c with what is gathered in a structure of its own, what is written in an array. SPDX-License-Identifier: MIT */
#include "../common.h"

enum { DEGREE = 8 };

struct gathered {
    double rank, share;
};

struct rest {
    double x, y, weight;
    int64_t label, community;
};

__attribute__((noinline)) void gather(const struct gathered *v, double *next, const int *edges, long n, long sweeps, double damping)
{
    for (long s = 0; s < sweeps; s++, keep_sweeps_apart())
        for (long i = 0; i < n; i++) {
            double sum = 0.0;
            for (long k = 0; k < DEGREE; k++) {
                const int u = edges[DEGREE * i + k];
                sum += v[u].rank * v[u].share;
            }
            next[i] = (1.0 - damping) + damping * sum;
        }
}

int main(int argc, char **argv)
{
    const struct options o = read_options(argc, argv, 400000, 60, 10000, 50000000);
    const size_t n = (size_t)o.size;
    struct gathered *v = aligned(n, sizeof *v);
    double *next = aligned(n, sizeof *next);
    struct rest *rest = aligned(n, sizeof *rest);
    int *edges = checked(malloc(n * DEGREE * sizeof *edges));
    struct stopwatch w = new_stopwatch(&o);
    struct checksum hash = {0, 0.0};
    uint64_t seed = 1;
    for (long i = 0; i < o.size; i++) {
        v[i].rank = 0.5 + next_random(&seed);
        rest[i] = (struct rest){next_random(&seed), next_random(&seed), 1.0, i, i % 17};
        v[i].share = 1.0 / DEGREE;
        for (long k = 0; k < DEGREE; k++)
            edges[DEGREE * i + k] = (int)((double)o.size * next_random(&seed));
    }
    for (long step = 0; step < o.steps; step++) {
        start(&w);
        gather(v, next, edges, o.size, o.sweeps, 0.875);
        stop(&w);
        for (long i = 0; i < o.size; i++)
            v[i].rank = next[i];
    }
    for (long i = 0; i < o.size; i++)
        hash = mix(hash, v[i].rank);
    finish(&o, &w, hash);
    free(v);
    free(next);
    free(rest);
    free(edges);
}
