/* Agents in two phases of a step, what each phase uses in tiles of its own. SPDX-License-Identifier: MIT */
enum { TILE = 64 };

typedef struct {
    float x[TILE], y[TILE], z[TILE], vx[TILE], vy[TILE], vz[TILE];
} motion;

typedef struct {
    float age[TILE], health[TILE];
} life;

typedef struct {
    float x[TILE], y[TILE], z[TILE];
    int kind[TILE];
} home;

__kernel void move(__global motion *motions, __global life *lives, __global home *homes, float dt)
{
    const size_t i = get_global_id(0), k = i % TILE;
    __global motion *one = &motions[i / TILE];
    one->x[k] += dt * one->vx[k];
    one->y[k] += dt * one->vy[k];
    one->z[k] += dt * one->vz[k];
}

__kernel void grow(__global motion *motions, __global life *lives, __global home *homes, float dt)
{
    const size_t i = get_global_id(0), k = i % TILE;
    __global life *one = &lives[i / TILE];
    one->age[k] += dt;
    one->health[k] -= 0.001f * dt * one->age[k];
}
