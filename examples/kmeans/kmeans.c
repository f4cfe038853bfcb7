/* The assignment step of k-means: every point finds the nearest of sixteen centres in eight dimensions.
 * SPDX-License-Identifier: MIT */
#include "../common.h"
#include <float.h>

enum { DIMS = 8, CENTRES = 16 };

struct point {
    float x[DIMS];
    int label;
    float distance;
};

typedef struct point *points;

__attribute__((noinline)) void assign(points p, long n, long sweeps, float centre[][DIMS], long centres)
{
    for (long s = 0; s < sweeps; s++, keep_sweeps_apart())
        for (long i = 0; i < n; i++) {
            float nearest = FLT_MAX;
            int best = 0;
            for (long c = 0; c < centres; c++) {
                float d = 0.0f;
                for (int k = 0; k < DIMS; k++) {
                    const float t = p[i].x[k] - centre[c][k];
                    d += t * t;
                }
                best = d < nearest ? (int)c : best;
                nearest = d < nearest ? d : nearest;
            }
            p[i].label = best;
            p[i].distance = nearest;
        }
}

static points allocate(long n)
{
    return checked(malloc((size_t)n * sizeof(struct point)));
}

static void put_coordinate(points p, long i, int k, float value)
{
    p[i].x[k] = value;
}

static float coordinate(points p, long i, int k)
{
    return p[i].x[k];
}

static int label(points p, long i)
{
    return p[i].label;
}

static float distance(points p, long i)
{
    return p[i].distance;
}

#include "kmeans.h"
