/* Points of 32 features as records: right for `assign`, which takes points at random, wrong for `spread`, which takes one
 * feature at a time. SPDX-License-Identifier: MIT */
#include "../common.h"

struct point {
    float x[32];
};

typedef struct point *points;

#define FEATURE(p, i, f) ((p)[i].x[f])

static points allocate(long n)
{
    return aligned((size_t)n, sizeof(struct point));
}

static void put(points p, long i, int f, float value)
{
    p[i].x[f] = value;
}

#include "kmeans32.h"
