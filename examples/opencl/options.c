/* Prices of European options, again for each of some rates: options [OPTIONS] [RATES] [KERNELS]. SPDX-License-Identifier: MIT */
#include "host.h"

struct option {
    float spot, strike, years, rate, volatility;
    float call, put;
};

int main(int argc, char **argv)
{
    const size_t count = number(argc, argv, 1, 1 << 20), rates = number(argc, argv, 2, 10);
    struct option *options = memory(count, sizeof *options);
    struct host host = start(argc > 3 ? argv[3] : "options.cl", "");
    for (size_t i = 0; i < count; i++)
        options[i] = (struct option){10 + 90 * chance(), 10 + 90 * chance(), 0.2f + chance(), 0, 0.1f + 0.4f * chance(), 0, 0};
    cl_mem on_device = buffer(host, options, count * sizeof *options);
    cl_kernel price = kernel(host, "price");
    give(price, 0, on_device);
    double sum = 0;
    for (size_t step = 0; step < rates; step++) {
        for (size_t i = 0; i < count; i++)
            options[i].rate = 0.01f * (float)(step + 1);
        send(host, on_device, options, count * sizeof *options);
        launch(host, price, count, 64);
        fetch(host, on_device, options, count * sizeof *options);
        for (size_t i = 0; i < count; i++)
            sum += options[i].call - options[i].put;
    }
    printf("%.6f\n", sum / (double)count);
    return 0;
}
