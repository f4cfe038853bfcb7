/* Seven sections over the voxels of a cube, of which each uses one to four of the six numbers of a voxel.
 * SPDX-License-Identifier: MIT */
#include "../common.h"

struct voxel {
    float raw, smooth, edge, next, outline, speed;
};

typedef struct voxel *voxels;

#define RAW(v, i) ((v)[i].raw)
#define SMOOTH(v, i) ((v)[i].smooth)
#define EDGE(v, i) ((v)[i].edge)
#define NEXT(v, i) ((v)[i].next)
#define OUTLINE(v, i) ((v)[i].outline)
#define SPEED(v, i) ((v)[i].speed)

static voxels allocate(long count)
{
    return aligned((size_t)count, sizeof(struct voxel));
}

#include "imaging.h"
