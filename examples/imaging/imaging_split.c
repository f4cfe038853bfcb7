/* imaging.c with the numbers of the smoothing and those of the outline apart; what both use is with the former.
 * SPDX-License-Identifier: MIT */
#include "../common.h"

struct smoothed {
    float raw, smooth, edge, next;
};

struct outlined {
    float outline, speed;
};

struct both {
    struct smoothed *a;
    struct outlined *b;
};

typedef struct both *voxels;

#define RAW(v, i) ((v)->a[i].raw)
#define SMOOTH(v, i) ((v)->a[i].smooth)
#define EDGE(v, i) ((v)->a[i].edge)
#define NEXT(v, i) ((v)->a[i].next)
#define OUTLINE(v, i) ((v)->b[i].outline)
#define SPEED(v, i) ((v)->b[i].speed)

static voxels allocate(long count)
{
    voxels v = checked(malloc(sizeof *v));
    v->a = aligned((size_t)count, sizeof *v->a);
    v->b = aligned((size_t)count, sizeof *v->b);
    return v;
}

#include "imaging.h"
