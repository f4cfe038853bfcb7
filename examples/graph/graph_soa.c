/* graph.c with an array for each field of the hotspot. SPDX-License-Identifier: MIT */
#include "../common.h"

enum { DEGREE = 8 };

struct rest {
    double x, y, weight;
    int64_t label, community;
};

__attribute__((noinline)) void gather(const double *rank, const double *share, double *next, const int *edges, long n, long sweeps, double damping)
{
    for (long s = 0; s < sweeps; s++, keep_sweeps_apart())
        for (long i = 0; i < n; i++) {
            double sum = 0.0;
            for (long k = 0; k < DEGREE; k++) {
                const int u = edges[DEGREE * i + k];
                sum += rank[u] * share[u];
            }
            next[i] = (1.0 - damping) + damping * sum;
        }
}

int main(int argc, char **argv)
{
    const struct options o = read_options(argc, argv, 400000, 60, 10000, 50000000);
    const size_t n = (size_t)o.size;
    double *rank = aligned(n, sizeof *rank), *share = aligned(n, sizeof *share), *next = aligned(n, sizeof *next);
    struct rest *rest = aligned(n, sizeof *rest);
    int *edges = checked(malloc(n * DEGREE * sizeof *edges));
    struct stopwatch w = new_stopwatch(&o);
    struct checksum hash = {0, 0.0};
    uint64_t seed = 1;
    for (long i = 0; i < o.size; i++) {
        rank[i] = 0.5 + next_random(&seed);
        rest[i] = (struct rest){next_random(&seed), next_random(&seed), 1.0, i, i % 17};
        share[i] = 1.0 / DEGREE;
        for (long k = 0; k < DEGREE; k++)
            edges[DEGREE * i + k] = (int)((double)o.size * next_random(&seed));
    }
    for (long step = 0; step < o.steps; step++) {
        start(&w);
        gather(rank, share, next, edges, o.size, o.sweeps, 0.875);
        stop(&w);
        for (long i = 0; i < o.size; i++)
            rank[i] = next[i];
    }
    for (long i = 0; i < o.size; i++)
        hash = mix(hash, rank[i]);
    finish(&o, &w, hash);
    free(rank);
    free(share);
    free(next);
    free(rest);
    free(edges);
}
