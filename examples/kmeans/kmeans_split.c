/* kmeans.c with what is read and what is written in structures of their own: the coordinates of a point fill an AVX2
 * register. SPDX-License-Identifier: MIT */
#include "../common.h"
#include <float.h>

enum { DIMS = 8, CENTRES = 16 };

struct position {
    float x[DIMS];
};

struct found {
    int label;
    float distance;
};

struct both {
    struct position *position;
    struct found *found;
};

typedef struct both *points;

__attribute__((noinline)) void assign(points p, long n, long sweeps, float centre[][DIMS], long centres)
{
    const struct position *position = p->position;
    struct found *found = p->found;
    for (long s = 0; s < sweeps; s++, keep_sweeps_apart())
        for (long i = 0; i < n; i++) {
            float nearest = FLT_MAX;
            int best = 0;
            for (long c = 0; c < centres; c++) {
                float d = 0.0f;
                for (int k = 0; k < DIMS; k++) {
                    const float t = position[i].x[k] - centre[c][k];
                    d += t * t;
                }
                best = d < nearest ? (int)c : best;
                nearest = d < nearest ? d : nearest;
            }
            found[i].label = best;
            found[i].distance = nearest;
        }
}

static points allocate(long n)
{
    points p = checked(malloc(sizeof *p));
    p->position = aligned((size_t)n, sizeof *p->position);
    p->found = aligned((size_t)n, sizeof *p->found);
    return p;
}

static void put_coordinate(points p, long i, int k, float value)
{
    p->position[i].x[k] = value;
}

static float coordinate(points p, long i, int k)
{
    return p->position[i].x[k];
}

static int label(points p, long i)
{
    return p->found[i].label;
}

static float distance(points p, long i)
{
    return p->found[i].distance;
}

#include "kmeans.h"
