/* kmeans_aosoa.c in the vector types of gcc and clang, for compilers that would not find the vectors themselves.
 * SPDX-License-Identifier: MIT */
#include "../common.h"
#include <float.h>

#ifndef LANES
#define LANES 8
#endif
enum { DIMS = 8, CENTRES = 16 };

typedef float floats __attribute__((vector_size(4 * LANES)));
typedef int ints __attribute__((vector_size(4 * LANES)));

struct block {
    floats x[DIMS];
    ints label;
    floats distance;
};

typedef struct block *points;

/* The last block may be partly empty; its unused lanes are computed and never looked at. */
__attribute__((noinline)) void assign(points p, long n, long sweeps, float centre[][DIMS], long centres)
{
    for (long s = 0; s < sweeps; s++, keep_sweeps_apart())
        for (long b = 0; b < (n + LANES - 1) / LANES; b++) {
            floats nearest = FLT_MAX - (floats){0.0f};
            ints best = {0};
            for (int c = 0; c < (int)centres; c++) {
                floats d = {0.0f};
                for (int k = 0; k < DIMS; k++) {
                    const floats t = p[b].x[k] - centre[c][k];
                    d += t * t;
                }
                const ints nearer = d < nearest;
                best = (nearer & c) | (~nearer & best);
                nearest = (floats)((nearer & (ints)d) | (~nearer & (ints)nearest));
            }
            p[b].label = best;
            p[b].distance = nearest;
        }
}

static points allocate(long n)
{
    const size_t blocks = (size_t)(n + LANES - 1) / LANES;
    return memset(aligned(blocks, sizeof(struct block)), 0, blocks * sizeof(struct block));
}

static void put_coordinate(points p, long i, int k, float value)
{
    p[i / LANES].x[k][i % LANES] = value;
}

static float coordinate(points p, long i, int k)
{
    return p[i / LANES].x[k][i % LANES];
}

static int label(points p, long i)
{
    return p[i / LANES].label[i % LANES];
}

static float distance(points p, long i)
{
    return p[i / LANES].distance[i % LANES];
}

#include "kmeans.h"
