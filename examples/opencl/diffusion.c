/* Diffusion of an image that keeps its edges: diffusion [SIDE] [STEPS] [KERNELS]. SPDX-License-Identifier: MIT */
#include "host.h"

struct pixel {
    float image, north, south, west, east, coefficient;
};

int main(int argc, char **argv)
{
    const size_t side = number(argc, argv, 1, 1024), steps = number(argc, argv, 2, 20), count = side * side;
    struct pixel *pixels = memory(count, sizeof *pixels);
    for (size_t i = 0; i < count; i++)
        pixels[i].image = chance();
    struct host host = start(argc > 3 ? argv[3] : "diffusion.cl", "");
    cl_mem on_device = buffer(host, pixels, count * sizeof *pixels);
    cl_kernel phases[] = {kernel(host, "gradients"), kernel(host, "diffuse")};
    const int width = (int)side;
    const float q0 = 0.05f, speed = 0.5f;
    for (int k = 0; k < 2; k++) {
        give(phases[k], 0, on_device);
        give(phases[k], 1, width);
        give(phases[k], 2, width);
    }
    give(phases[0], 3, q0);
    give(phases[1], 3, speed);
    for (size_t step = 0; step < steps; step++)
        for (int k = 0; k < 2; k++)
            launch_rows(host, phases[k], side, side);
    fetch(host, on_device, pixels, count * sizeof *pixels);
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += pixels[i].image;
    printf("%.6f\n", sum / (double)count);
    return 0;
}
