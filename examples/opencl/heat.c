/* Temperature of a chip over time: heat [SIDE] [STEPS] [KERNELS]. SPDX-License-Identifier: MIT */
#include "host.h"

struct cell {
    float now, next, power, ambient;
};

int main(int argc, char **argv)
{
    const size_t side = number(argc, argv, 1, 1024), steps = number(argc, argv, 2, 20), count = side * side;
    struct cell *cells = memory(count, sizeof *cells);
    for (size_t i = 0; i < count; i++)
        cells[i] = (struct cell){300, 0, chance(), 300};
    struct host host = start(argc > 3 ? argv[3] : "heat.cl", "");
    cl_mem on_device = buffer(host, cells, count * sizeof *cells);
    cl_kernel advance = kernel(host, "advance"), settle = kernel(host, "settle");
    const int width = (int)side;
    give(advance, 0, on_device);
    give(advance, 1, width);
    give(advance, 2, width);
    give(settle, 0, on_device);
    for (size_t step = 0; step < steps; step++) {
        launch_rows(host, advance, side, side);
        launch(host, settle, count, side % 64 == 0 ? 64 : 1);
    }
    fetch(host, on_device, cells, count * sizeof *cells);
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += cells[i].now;
    printf("%.6f\n", sum / (double)count);
    return 0;
}
