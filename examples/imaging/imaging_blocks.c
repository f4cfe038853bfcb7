/* imaging.c in blocks of sixteen voxels: a cache line for each number of a block. SPDX-License-Identifier: MIT */
#include "../common.h"

enum { BLOCK = 16 };

struct block {
    float raw[BLOCK], smooth[BLOCK], edge[BLOCK], next[BLOCK], outline[BLOCK], speed[BLOCK];
};

typedef struct block *voxels;

#define RAW(v, i) ((v)[(unsigned long)(i) / BLOCK].raw[(unsigned long)(i) % BLOCK])
#define SMOOTH(v, i) ((v)[(unsigned long)(i) / BLOCK].smooth[(unsigned long)(i) % BLOCK])
#define EDGE(v, i) ((v)[(unsigned long)(i) / BLOCK].edge[(unsigned long)(i) % BLOCK])
#define NEXT(v, i) ((v)[(unsigned long)(i) / BLOCK].next[(unsigned long)(i) % BLOCK])
#define OUTLINE(v, i) ((v)[(unsigned long)(i) / BLOCK].outline[(unsigned long)(i) % BLOCK])
#define SPEED(v, i) ((v)[(unsigned long)(i) / BLOCK].speed[(unsigned long)(i) % BLOCK])

static voxels allocate(long count)
{
    return aligned((size_t)(count + BLOCK - 1) / BLOCK, sizeof(struct block));
}

#include "imaging.h"
