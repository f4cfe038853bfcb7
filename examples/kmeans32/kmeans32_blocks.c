/* kmeans32.c in blocks of sixteen points: a cache line for each feature of a block. SPDX-License-Identifier: MIT */
#include "../common.h"

enum { BLOCK = 16 };

struct block {
    float x[32][BLOCK];
};

typedef struct block *points;

#define FEATURE(p, i, f) ((p)[(unsigned long)(i) / BLOCK].x[f][(unsigned long)(i) % BLOCK])

static points allocate(long n)
{
    return aligned((size_t)(n + BLOCK - 1) / BLOCK, sizeof(struct block));
}

static void put(points p, long i, int f, float value)
{
    FEATURE(p, i, f) = value;
}

#include "kmeans32.h"
