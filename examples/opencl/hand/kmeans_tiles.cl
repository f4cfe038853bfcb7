/* The nearest of some centres for each point, coordinates and what is found in tiles. SPDX-License-Identifier: MIT */
enum { TILE = 64 };

typedef struct {
    float a[TILE], b[TILE], c[TILE], d[TILE], e[TILE], f[TILE], g[TILE], h[TILE];
} place;

typedef struct {
    int cluster[TILE];
    float distance[TILE];
} found_centre;

float square(float v) { return v * v; }

__kernel void assign(__global const place *places, __global found_centre *results, __constant float *centres, int count)
{
    const size_t i = get_global_id(0), j = i % TILE;
    __global const place *own = &places[i / TILE];
    int best = 0;
    float least = FLT_MAX;
    for (int k = 0; k < count; k++) {
        __constant float *at = centres + 8 * k;
        const float found = square(own->a[j] - at[0]) + square(own->b[j] - at[1]) + square(own->c[j] - at[2])
            + square(own->d[j] - at[3]) + square(own->e[j] - at[4]) + square(own->f[j] - at[5])
            + square(own->g[j] - at[6]) + square(own->h[j] - at[7]);
        if (found < least) {
            least = found;
            best = k;
        }
    }
    results[i / TILE].cluster[j] = best;
    results[i / TILE].distance[j] = least;
}
