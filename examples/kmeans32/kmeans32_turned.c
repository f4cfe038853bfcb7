/* kmeans32.c with an array for each feature for `spread`, and a copy as records for `assign`, made once for all batches.
 * SPDX-License-Identifier: MIT */
#define OWN_LAYOUT
#include "../common.h"

struct columns {
    long count;
    float *x;
    struct point *copy;
};

struct point {
    float x[32];
};

typedef struct columns *points;
typedef const struct point *searched;

#define FEATURE(p, i, f) ((p)->x[(f) * (p)->count + (i)])
#define FOUND(p, i, f) ((p)[i].x[f])

static points allocate(long n)
{
    points p = checked(malloc(sizeof *p));
    p->count = n;
    p->x = aligned((size_t)n * 32, sizeof(float));
    p->copy = aligned((size_t)n, sizeof *p->copy);
    return p;
}

static void put(points p, long i, int f, float value)
{
    FEATURE(p, i, f) = value;
}

/* Sixteen points at a time: whole cache lines on both sides. */
static searched turned(points p, long n)
{
    for (long first = 0; first < n; first += 16)
        for (int f = 0; f < 32; f++)
            for (long i = first; i < n && i < first + 16; i++)
                p->copy[i].x[f] = FEATURE(p, i, f);
    return p->copy;
}

#include "kmeans32.h"
