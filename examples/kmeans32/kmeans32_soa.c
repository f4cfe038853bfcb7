/* kmeans32.c with an array for each feature, one behind the other. SPDX-License-Identifier: MIT */
#include "../common.h"

struct columns {
    long count;
    float *x;
};

typedef struct columns *points;

#define FEATURE(p, i, f) ((p)->x[(f) * (p)->count + (i)])

static points allocate(long n)
{
    points p = checked(malloc(sizeof *p));
    p->count = n;
    p->x = aligned((size_t)n * 32, sizeof(float));
    return p;
}

static void put(points p, long i, int f, float value)
{
    FEATURE(p, i, f) = value;
}

#include "kmeans32.h"
