/* kmeans.c in blocks of eight points, whose distances are computed together: one AVX2 register of floats for each
 * coordinate. SPDX-License-Identifier: MIT */
#include "../common.h"
#include <float.h>

enum { DIMS = 8, CENTRES = 16, LANES = 8 };

struct block {
    float x[DIMS][LANES];
    int label[LANES];
    float distance[LANES];
};

typedef struct block *points;

/* The last block may be partly empty; its unused lanes are computed and never looked at. */
__attribute__((noinline)) void assign(points p, long n, long sweeps, float centre[][DIMS], long centres)
{
    for (long s = 0; s < sweeps; s++, keep_sweeps_apart())
        for (long b = 0; b < (n + LANES - 1) / LANES; b++) {
            float nearest[LANES];
            int best[LANES];
            for (int l = 0; l < LANES; l++) {
                nearest[l] = FLT_MAX;
                best[l] = 0;
            }
            for (int c = 0; c < (int)centres; c++) {
                for (int l = 0; l < LANES; l++) {
                    float d = 0.0f;
                    for (int k = 0; k < DIMS; k++) {
                        const float t = p[b].x[k][l] - centre[c][k];
                        d += t * t;
                    }
                    best[l] = d < nearest[l] ? c : best[l];
                    nearest[l] = d < nearest[l] ? d : nearest[l];
                }
            }
            for (int l = 0; l < LANES; l++) {
                p[b].label[l] = best[l];
                p[b].distance[l] = nearest[l];
            }
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
