/* imaging_soa.c with each line of voxels written for SIMD, but for the sums, whose order matters.
 * SPDX-License-Identifier: MIT */
#include "../common.h"

struct columns {
    float *raw, *smooth, *edge, *next, *outline, *speed;
};

typedef struct columns *voxels;

#define RAW(v, i) ((v)->raw[i])
#define SMOOTH(v, i) ((v)->smooth[i])
#define EDGE(v, i) ((v)->edge[i])
#define NEXT(v, i) ((v)->next[i])
#define OUTLINE(v, i) ((v)->outline[i])
#define SPEED(v, i) ((v)->speed[i])

static voxels allocate(long count)
{
    voxels v = checked(malloc(sizeof *v));
    float **column[] = {&v->raw, &v->smooth, &v->edge, &v->next, &v->outline, &v->speed};
    for (int k = 0; k < 6; k++)
        *column[k] = aligned((size_t)count, sizeof(float));
    return v;
}

#define INNER_VOXELS(n)                  \
    for (long z = 1; z < (n)-1; z++)     \
        for (long y = 1; y < (n)-1; y++) \
            _Pragma("omp simd") for (long i = (z * (n) + y) * (n) + 1; i < (z * (n) + y + 1) * (n)-1; i++)

#include "imaging.h"
