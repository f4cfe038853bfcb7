/* graph.c with the fields of the hotspot in a structure of their own. SPDX-License-Identifier: MIT */
#include "../common.h"

enum { DEGREE = 8 };

struct hot {
    double rank, next, share;
};

struct rest {
    double x, y, weight;
    int64_t label, community;
};

__attribute__((noinline)) void gather(struct hot *v, const int *edges, long n, long sweeps, double damping)
{
    for (long s = 0; s < sweeps; s++, keep_sweeps_apart())
        for (long i = 0; i < n; i++) {
            double sum = 0.0;
            for (long k = 0; k < DEGREE; k++) {
                const int u = edges[DEGREE * i + k];
                sum += v[u].rank * v[u].share;
            }
            v[i].next = (1.0 - damping) + damping * sum;
        }
}

int main(int argc, char **argv)
{
    const struct options o = read_options(argc, argv, 400000, 60, 10000, 50000000);
    const size_t n = (size_t)o.size;
    struct hot *v = aligned(n, sizeof *v);
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
        gather(v, edges, o.size, o.sweeps, 0.875);
        stop(&w);
        for (long i = 0; i < o.size; i++)
            v[i].rank = v[i].next;
    }
    for (long i = 0; i < o.size; i++)
        hash = mix(hash, v[i].rank);
    finish(&o, &w, hash);
    free(v);
    free(rest);
    free(edges);
}
