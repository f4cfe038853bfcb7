/* The nearest of some centres for each point, coordinates apart from what is found. SPDX-License-Identifier: MIT */
typedef struct {
    float a, b, c, d, e, f, g, h;
} place;

typedef struct {
    int cluster;
    float distance;
} found_centre;

float square(float v) { return v * v; }

__kernel void assign(__global const place *places, __global found_centre *results, __constant float *centres, int count)
{
    const size_t i = get_global_id(0);
    int best = 0;
    float least = FLT_MAX;
    for (int k = 0; k < count; k++) {
        __constant float *at = centres + 8 * k;
        const float found = square(places[i].a - at[0]) + square(places[i].b - at[1]) + square(places[i].c - at[2])
            + square(places[i].d - at[3]) + square(places[i].e - at[4]) + square(places[i].f - at[5])
            + square(places[i].g - at[6]) + square(places[i].h - at[7]);
        if (found < least) {
            least = found;
            best = k;
        }
    }
    results[i].cluster = best;
    results[i].distance = least;
}
