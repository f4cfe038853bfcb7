/* Diffusion that keeps edges, two stencils over one record as in SRAD of Rodinia. SPDX-License-Identifier: MIT */
typedef struct {
    float image, north, south, west, east, coefficient;
} pixel;

__kernel void gradients(__global pixel *pixels, int width, int height, float q0)
{
    const int x = get_global_id(0), y = get_global_id(1), i = y * width + x;
    const float here = pixels[i].image + 0.1f;
    const float n = pixels[max(y - 1, 0) * width + x].image - here, s = pixels[min(y + 1, height - 1) * width + x].image - here;
    const float w = pixels[y * width + max(x - 1, 0)].image - here, e = pixels[y * width + min(x + 1, width - 1)].image - here;
    const float g2 = (n * n + s * s + w * w + e * e) / (here * here), l = (n + s + w + e) / here;
    const float q = (0.5f * g2 - 0.0625f * l * l) / ((1 + 0.25f * l) * (1 + 0.25f * l));
    pixels[i].north = n;
    pixels[i].south = s;
    pixels[i].west = w;
    pixels[i].east = e;
    pixels[i].coefficient = clamp(1 / (1 + (q - q0) / (q0 * (1 + q0))), 0.0f, 1.0f);
}

__kernel void diffuse(__global pixel *pixels, int width, int height, float speed)
{
    const int x = get_global_id(0), y = get_global_id(1), i = y * width + x;
    const float here = pixels[i].coefficient;
    const float south = pixels[min(y + 1, height - 1) * width + x].coefficient;
    const float east = pixels[y * width + min(x + 1, width - 1)].coefficient;
    const float sum = here * pixels[i].north + south * pixels[i].south + here * pixels[i].west + east * pixels[i].east;
    pixels[i].image += 0.25f * speed * sum;
}
