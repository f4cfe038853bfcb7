/* Temperature of a chip, what is read once for a cell in records. SPDX-License-Identifier: MIT */
typedef struct {
    float power, ambient;
} source;

__kernel void advance(__global const float *now, __global float *next, __global const source *sources, int width, int height)
{
    const int x = get_global_id(0), y = get_global_id(1), i = y * width + x;
    const float here = now[i];
    const float up = now[max(y - 1, 0) * width + x], down = now[min(y + 1, height - 1) * width + x];
    const float left = now[y * width + max(x - 1, 0)], right = now[y * width + min(x + 1, width - 1)];
    next[i] = here + 0.1f * (up + down + left + right - 4 * here) + 0.05f * sources[i].power
        + 0.01f * (sources[i].ambient - here);
}
