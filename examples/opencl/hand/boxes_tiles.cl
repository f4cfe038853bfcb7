/* Forces between particles of a box and its neighbours, a box's coordinates one behind the other. SPDX-License-Identifier: MIT */
enum { BOX = 64 };

typedef struct {
    float v[BOX], x[BOX], y[BOX], z[BOX];
} box;

typedef struct {
    float charge[BOX];
} charges;

__kernel void forces(__global const box *particles, __global const charges *all, __global box *out, int boxes, float a2)
{
    const int home = get_global_id(0) / BOX, k = get_global_id(0) % BOX;
    const float own_v = particles[home].v[k], own_x = particles[home].x[k];
    const float own_y = particles[home].y[k], own_z = particles[home].z[k];
    float v = 0, x = 0, y = 0, z = 0;
    for (int side = -1; side <= 1; side++) {
        const int at = (home + side + boxes) % boxes;
        __global const box *other = &particles[at];
        for (int j = 0; j < BOX; j++) {
            const float dot = own_x * other->x[j] + own_y * other->y[j] + own_z * other->z[j];
            const float r2 = own_v + other->v[j] - dot, u2 = a2 * r2, vij = exp(-u2), fs = 2 * vij;
            const float charge = all[at].charge[j];
            v += charge * vij;
            x += charge * fs * (own_x - other->x[j]);
            y += charge * fs * (own_y - other->y[j]);
            z += charge * fs * (own_z - other->z[j]);
        }
    }
    out[home].v[k] = v;
    out[home].x[k] = x;
    out[home].y[k] = y;
    out[home].z[k] = z;
}
