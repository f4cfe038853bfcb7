/* The nearest of some centres for each point, an array for each coordinate. SPDX-License-Identifier: MIT */
float square(float v) { return v * v; }

__kernel void assign(__global const float *a, __global const float *b, __global const float *c, __global const float *d,
    __global const float *e, __global const float *f, __global const float *g, __global const float *h, __global int *cluster,
    __global float *distance, __constant float *centres, int count)
{
    const size_t i = get_global_id(0);
    int best = 0;
    float least = FLT_MAX;
    for (int k = 0; k < count; k++) {
        __constant float *at = centres + 8 * k;
        const float found = square(a[i] - at[0]) + square(b[i] - at[1]) + square(c[i] - at[2]) + square(d[i] - at[3])
            + square(e[i] - at[4]) + square(f[i] - at[5]) + square(g[i] - at[6]) + square(h[i] - at[7]);
        if (found < least) {
            least = found;
            best = k;
        }
    }
    cluster[i] = best;
    distance[i] = least;
}
