/* Agents in two phases of a step, age and health in arrays of their own. SPDX-License-Identifier: MIT */
typedef struct {
    float x, y, z, vx, vy, vz;
    float home_x, home_y, home_z;
    int kind;
} agent;

__kernel void move(__global agent *agents, __global float *age, __global float *health, float dt)
{
    const size_t i = get_global_id(0);
    agents[i].x += dt * agents[i].vx;
    agents[i].y += dt * agents[i].vy;
    agents[i].z += dt * agents[i].vz;
}

__kernel void grow(__global agent *agents, __global float *age, __global float *health, float dt)
{
    const size_t i = get_global_id(0);
    age[i] += dt;
    health[i] -= 0.001f * dt * age[i];
}
