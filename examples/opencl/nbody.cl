/* Gravity of all bodies on each. SPDX-License-Identifier: MIT */
typedef struct {
    float x, y, z, m;
    float vx, vy, vz;
} body;

__kernel void advance(__global const body *from, __global body *to, int count, float dt)
{
    const int i = get_global_id(0);
    const float x = from[i].x, y = from[i].y, z = from[i].z;
    float ax = 0, ay = 0, az = 0;
    for (int j = 0; j < count; j++) {
        const float dx = from[j].x - x, dy = from[j].y - y, dz = from[j].z - z;
        const float square = dx * dx + dy * dy + dz * dz + 0.01f;
        const float pull = from[j].m / (square * sqrt(square));
        ax += pull * dx;
        ay += pull * dy;
        az += pull * dz;
    }
    const float vx = from[i].vx + dt * ax, vy = from[i].vy + dt * ay, vz = from[i].vz + dt * az;
    to[i].x = x + dt * vx;
    to[i].y = y + dt * vy;
    to[i].z = z + dt * vz;
    to[i].m = from[i].m;
    to[i].vx = vx;
    to[i].vy = vy;
    to[i].vz = vz;
}
