/* Forces between the particles of neighbouring boxes: boxes [BOXES] [STEPS] [KERNELS]. SPDX-License-Identifier: MIT */
#include "host.h"

enum { BOX = 64 };

struct particle {
    float v, x, y, z;
};

int main(int argc, char **argv)
{
    const size_t boxes = number(argc, argv, 1, 1024), steps = number(argc, argv, 2, 10), count = boxes * BOX;
    struct particle *particles = memory(count, sizeof *particles), *forces = memory(count, sizeof *forces);
    float *charges = memory(count, sizeof *charges);
    for (size_t i = 0; i < count; i++) {
        particles[i] = (struct particle){chance(), chance(), chance(), chance()};
        charges[i] = chance();
    }
    struct host host = start(argc > 3 ? argv[3] : "boxes.cl", "");
    cl_mem place = buffer(host, particles, count * sizeof *particles), out = buffer(host, forces, count * sizeof *forces);
    cl_mem charge = buffer(host, charges, count * sizeof *charges);
    cl_kernel compute = kernel(host, "forces");
    const int number_of_boxes = (int)boxes;
    const float a2 = 0.5f;
    give(compute, 0, place);
    give(compute, 1, charge);
    give(compute, 2, out);
    give(compute, 3, number_of_boxes);
    give(compute, 4, a2);
    for (size_t step = 0; step < steps; step++)
        launch(host, compute, count, BOX);
    fetch(host, out, forces, count * sizeof *forces);
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += forces[i].v + forces[i].x;
    printf("%.6f\n", sum / (double)count);
    return 0;
}
