/* One step of a random walk's distribution over a graph: every node gathers from its neighbours. The nodes hold more than the
 * walk needs. SPDX-License-Identifier: MIT */
#include "../common.h"

enum { DEGREE = 8 };

struct node {
    double rank, next;
    double share; /* 1 / number of edges that leave */
    double x, y, weight;
    int64_t label, community;
};

__attribute__((noinline)) void gather(struct node *v, const int *edges, long n, long sweeps, double damping)
{
    for (long s = 0; s < sweeps; s++, keep_sweeps_apart())
        for (long i = 0; i < n; i++) {
            double sum = 0.0;
            for (long k = 0; k < DEGREE; k++) {
                const struct node *u = &v[edges[DEGREE * i + k]];
                sum += u->rank * u->share;
            }
            v[i].next = (1.0 - damping) + damping * sum;
        }
}

static void initialise(struct node *v, int *edges, long n)
{
    uint64_t seed = 1;
    for (long i = 0; i < n; i++) {
        v[i] = (struct node){0.5 + next_random(&seed), 0.0, 0.0, next_random(&seed), next_random(&seed), 1.0, i, i % 17};
        v[i].share = 1.0 / DEGREE;
        for (long k = 0; k < DEGREE; k++)
            edges[DEGREE * i + k] = (int)((double)n * next_random(&seed));
    }
}

int main(int argc, char **argv)
{
    const struct options o = read_options(argc, argv, 400000, 60, 10000, 50000000);
    struct node *v = checked(malloc((size_t)o.size * sizeof *v));
    int *edges = checked(malloc((size_t)o.size * DEGREE * sizeof *edges));
    struct stopwatch w = new_stopwatch(&o);
    struct checksum hash = {0, 0.0};
    initialise(v, edges, o.size);
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
    free(edges);
}
