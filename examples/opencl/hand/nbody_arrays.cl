/* Gravity of all bodies on each, an array for each coordinate. SPDX-License-Identifier: MIT */
__kernel void advance(__global const float *x, __global const float *y, __global const float *z, __global const float *m,
    __global const float *vx, __global const float *vy, __global const float *vz, __global float *new_x, __global float *new_y,
    __global float *new_z, __global float *new_m, __global float *new_vx, __global float *new_vy, __global float *new_vz,
    int count, float dt)
{
    const int i = get_global_id(0);
    const float own_x = x[i], own_y = y[i], own_z = z[i];
    float ax = 0, ay = 0, az = 0;
    for (int j = 0; j < count; j++) {
        const float dx = x[j] - own_x, dy = y[j] - own_y, dz = z[j] - own_z;
        const float square = dx * dx + dy * dy + dz * dz + 0.01f;
        const float pull = m[j] / (square * sqrt(square));
        ax += pull * dx;
        ay += pull * dy;
        az += pull * dz;
    }
    const float ux = vx[i] + dt * ax, uy = vy[i] + dt * ay, uz = vz[i] + dt * az;
    new_x[i] = own_x + dt * ux;
    new_y[i] = own_y + dt * uy;
    new_z[i] = own_z + dt * uz;
    new_m[i] = m[i];
    new_vx[i] = ux;
    new_vy[i] = uy;
    new_vz[i] = uz;
}
