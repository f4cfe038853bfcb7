/* Forces between particles of a box and its neighbours, as LavaMD of Rodinia computes them. SPDX-License-Identifier: MIT */
typedef struct {
    float v, x, y, z;
} particle;

typedef struct {
    float v, x, y, z;
} force;

enum { BOX = 64 };

__kernel void forces(__global const particle *particles, __global const float *charge, __global force *out, int boxes, float a2)
{
    const int i = get_global_id(0), home = i / BOX;
    const particle own = particles[i];
    force sum = {0, 0, 0, 0};
    for (int side = -1; side <= 1; side++) {
        const int other = (home + side + boxes) % boxes;
        for (int j = 0; j < BOX; j++) {
            const int at = other * BOX + j;
            const float dot = own.x * particles[at].x + own.y * particles[at].y + own.z * particles[at].z;
            const float r2 = own.v + particles[at].v - dot, u2 = a2 * r2, vij = exp(-u2), fs = 2 * vij;
            sum.v += charge[at] * vij;
            sum.x += charge[at] * fs * (own.x - particles[at].x);
            sum.y += charge[at] * fs * (own.y - particles[at].y);
            sum.z += charge[at] * fs * (own.z - particles[at].z);
        }
    }
    out[i] = sum;
}
