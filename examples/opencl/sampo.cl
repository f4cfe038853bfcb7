/* Agents of twelve numbers in two phases of a step: movement uses six of them, ageing two. SPDX-License-Identifier: MIT */
typedef struct {
    float x, y, z;
    float vx, vy, vz;
    float age, health;
    float home_x, home_y, home_z;
    int kind;
} agent;

__kernel void move(__global agent *agents, float dt)
{
    const size_t i = get_global_id(0);
    agents[i].x += dt * agents[i].vx;
    agents[i].y += dt * agents[i].vy;
    agents[i].z += dt * agents[i].vz;
}

__kernel void grow(__global agent *agents, float dt)
{
    const size_t i = get_global_id(0);
    agents[i].age += dt;
    agents[i].health -= 0.001f * dt * agents[i].age;
}
