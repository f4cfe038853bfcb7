/* Gravity of all bodies on each, velocities apart from what the loop reads. SPDX-License-Identifier: MIT */
typedef struct {
    float x, y, z, m;
} place;

typedef struct {
    float x, y, z;
} velocity;

__kernel void advance(__global const place *from, __global const velocity *speed, __global place *to,
    __global velocity *new_speed, int count, float dt)
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
    const float vx = speed[i].x + dt * ax, vy = speed[i].y + dt * ay, vz = speed[i].z + dt * az;
    to[i].x = x + dt * vx;
    to[i].y = y + dt * vy;
    to[i].z = z + dt * vz;
    to[i].m = from[i].m;
    new_speed[i].x = vx;
    new_speed[i].y = vy;
    new_speed[i].z = vz;
}
