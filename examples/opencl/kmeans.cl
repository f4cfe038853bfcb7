/* The nearest of some centres for each point of eight coordinates. SPDX-License-Identifier: MIT */
typedef struct {
    float a, b, c, d, e, f, g, h;
    int cluster;
    float distance;
} point;

float square(float v) { return v * v; }

__kernel void assign(__global point *points, __constant float *centres, int count)
{
    const size_t i = get_global_id(0);
    int best = 0;
    float least = FLT_MAX;
    for (int k = 0; k < count; k++) {
        __constant float *at = centres + 8 * k;
        const float found = square(points[i].a - at[0]) + square(points[i].b - at[1]) + square(points[i].c - at[2])
            + square(points[i].d - at[3]) + square(points[i].e - at[4]) + square(points[i].f - at[5])
            + square(points[i].g - at[6]) + square(points[i].h - at[7]);
        if (found < least) {
            least = found;
            best = k;
        }
    }
    points[i].cluster = best;
    points[i].distance = least;
}
