/* Steps of agents on an OpenCL device: sampo [AGENTS] [STEPS]. SPDX-License-Identifier: MIT */
#include "host.h"

struct agent {
    float x, y, z, vx, vy, vz, age, health, home[3];
    int kind;
};

int main(int argc, char **argv)
{
    const size_t count = argc > 1 ? strtoul(argv[1], NULL, 10) : 1 << 20;
    const long steps = argc > 2 ? strtol(argv[2], NULL, 10) : 20;
    struct agent *agents = calloc(count, sizeof *agents);
    for (size_t i = 0; agents != NULL && i < count; i++) {
        const float f = (float)(i % 1000) * 0.001f;
        agents[i] = (struct agent){f, 1 - f, f * f, 0.5f - f, f, 0.25f, f * 40, 1, {f, f, f}, (int)(i % 3)};
    }
    struct host host = start(argc > 3 ? argv[3] : "sampo.cl", "");
    cl_mem on_device = buffer(host, agents, count * sizeof *agents);
    cl_kernel move = kernel(host, "move"), grow = kernel(host, "grow");
    const float dt = 0.01f;
    for (int k = 0; k < 2; k++) {
        check(clSetKernelArg(k ? grow : move, 0, sizeof on_device, &on_device), "clSetKernelArg");
        check(clSetKernelArg(k ? grow : move, 1, sizeof dt, &dt), "clSetKernelArg");
    }
    for (long step = 0; step < steps; step++) {
        launch(host, move, count, 64);
        launch(host, grow, count, 64);
    }
    fetch(host, on_device, agents, count * sizeof *agents);
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += agents[i].x + agents[i].health;
    printf("%.6f\n", sum / (double)count);
    return 0;
}
