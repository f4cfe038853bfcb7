/* Agents in two phases of a step, what each phase uses in records of its own. SPDX-License-Identifier: MIT */
typedef struct {
    float x, y, z, vx, vy, vz;
} motion;

typedef struct {
    float age, health;
} life;

typedef struct {
    float x, y, z;
    int kind;
} home;

__kernel void move(__global motion *motions, __global life *lives, __global home *homes, float dt)
{
    const size_t i = get_global_id(0);
    motions[i].x += dt * motions[i].vx;
    motions[i].y += dt * motions[i].vy;
    motions[i].z += dt * motions[i].vz;
}

__kernel void grow(__global motion *motions, __global life *lives, __global home *homes, float dt)
{
    const size_t i = get_global_id(0);
    lives[i].age += dt;
    lives[i].health -= 0.001f * dt * lives[i].age;
}
