/* kmeans.c with an array for each coordinate. SPDX-License-Identifier: MIT */
#include "../common.h"
#include <float.h>

enum { DIMS = 8, CENTRES = 16 };

struct arrays {
    float *x[DIMS];
    int *label;
    float *distance;
};

typedef struct arrays *points;

__attribute__((noinline)) void assign(points p, long n, long sweeps, float centre[][DIMS], long centres)
{
    float *const *x = p->x, *distances = p->distance;
    int *label = p->label;
    for (long s = 0; s < sweeps; s++, keep_sweeps_apart())
        for (long i = 0; i < n; i++) {
            float nearest = FLT_MAX;
            int best = 0;
            for (long c = 0; c < centres; c++) {
                float d = 0.0f;
                for (int k = 0; k < DIMS; k++) {
                    const float t = x[k][i] - centre[c][k];
                    d += t * t;
                }
                best = d < nearest ? (int)c : best;
                nearest = d < nearest ? d : nearest;
            }
            label[i] = best;
            distances[i] = nearest;
        }
}

static points allocate(long n)
{
    points p = checked(malloc(sizeof *p));
    for (int k = 0; k < DIMS; k++)
        p->x[k] = aligned((size_t)n, sizeof(float));
    p->label = aligned((size_t)n, sizeof(int));
    p->distance = aligned((size_t)n, sizeof(float));
    return p;
}

static void put_coordinate(points p, long i, int k, float value)
{
    p->x[k][i] = value;
}

static float coordinate(points p, long i, int k)
{
    return p->x[k][i];
}

static int label(points p, long i)
{
    return p->label[i];
}

static float distance(points p, long i)
{
    return p->distance[i];
}

#include "kmeans.h"
