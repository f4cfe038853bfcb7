/* Diffusion that keeps edges, an array for each number of a pixel. SPDX-License-Identifier: MIT */
__kernel void gradients(__global const float *image, __global float *north, __global float *south, __global float *west,
    __global float *east, __global float *coefficient, int width, int height, float q0)
{
    const int x = get_global_id(0), y = get_global_id(1), i = y * width + x;
    const float here = image[i] + 0.1f;
    const float n = image[max(y - 1, 0) * width + x] - here, s = image[min(y + 1, height - 1) * width + x] - here;
    const float w = image[y * width + max(x - 1, 0)] - here, e = image[y * width + min(x + 1, width - 1)] - here;
    const float g2 = (n * n + s * s + w * w + e * e) / (here * here), l = (n + s + w + e) / here;
    const float q = (0.5f * g2 - 0.0625f * l * l) / ((1 + 0.25f * l) * (1 + 0.25f * l));
    north[i] = n;
    south[i] = s;
    west[i] = w;
    east[i] = e;
    coefficient[i] = clamp(1 / (1 + (q - q0) / (q0 * (1 + q0))), 0.0f, 1.0f);
}
