/* Forces between particles of a box and its neighbours, an array for each coordinate. SPDX-License-Identifier: MIT */
enum { BOX = 64 };

__kernel void forces(__global const float *v, __global const float *x, __global const float *y, __global const float *z,
    __global const float *charge, __global float *out_v, __global float *out_x, __global float *out_y, __global float *out_z,
    int boxes, float a2)
{
    const int i = get_global_id(0), home = i / BOX;
    const float own_v = v[i], own_x = x[i], own_y = y[i], own_z = z[i];
    float sum_v = 0, sum_x = 0, sum_y = 0, sum_z = 0;
    for (int side = -1; side <= 1; side++) {
        const int other = (home + side + boxes) % boxes;
        for (int j = 0; j < BOX; j++) {
            const int at = other * BOX + j;
            const float dot = own_x * x[at] + own_y * y[at] + own_z * z[at];
            const float r2 = own_v + v[at] - dot, u2 = a2 * r2, vij = exp(-u2), fs = 2 * vij;
            sum_v += charge[at] * vij;
            sum_x += charge[at] * fs * (own_x - x[at]);
            sum_y += charge[at] * fs * (own_y - y[at]);
            sum_z += charge[at] * fs * (own_z - z[at]);
        }
    }
    out_v[i] = sum_v;
    out_x[i] = sum_x;
    out_y[i] = sum_y;
    out_z[i] = sum_z;
}
