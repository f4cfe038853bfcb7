/* Steps of bodies that attract one another: nbody [BODIES] [STEPS] [KERNELS]. SPDX-License-Identifier: MIT */
#include "host.h"

struct body {
    float x, y, z, m, vx, vy, vz;
};

int main(int argc, char **argv)
{
    const size_t bodies = number(argc, argv, 1, 4096), steps = number(argc, argv, 2, 20);
    struct body *all = memory(bodies, sizeof *all);
    for (size_t i = 0; i < bodies; i++)
        all[i] = (struct body){chance(), chance(), chance(), chance() / (float)bodies, 0, 0, 0};
    struct host host = start(argc > 3 ? argv[3] : "nbody.cl", "");
    cl_mem place[] = {buffer(host, all, bodies * sizeof *all), buffer(host, all, bodies * sizeof *all)};
    cl_kernel advance = kernel(host, "advance");
    const int count = (int)bodies;
    const float dt = 0.001f;
    give(advance, 2, count);
    give(advance, 3, dt);
    for (size_t step = 0; step < steps; step++) {
        give(advance, 0, place[step % 2]);
        give(advance, 1, place[(step + 1) % 2]);
        launch(host, advance, bodies, 64);
    }
    fetch(host, place[steps % 2], all, bodies * sizeof *all);
    double sum = 0;
    for (size_t i = 0; i < bodies; i++)
        sum += all[i].x + all[i].vx;
    printf("%.6f\n", sum / (double)bodies);
    return 0;
}
