/* Sorts records by their key: bitonic [RECORDS, a power of two] [ROUNDS] [KERNELS]. SPDX-License-Identifier: MIT */
#include "host.h"

struct entry {
    unsigned key, value;
    float weight;
    unsigned next;
};

int main(int argc, char **argv)
{
    const size_t count = number(argc, argv, 1, 1 << 20), rounds = number(argc, argv, 2, 1);
    struct entry *entries = memory(count, sizeof *entries);
    struct host host = start(argc > 3 ? argv[3] : "bitonic.cl", "");
    cl_mem on_device = buffer(host, entries, count * sizeof *entries);
    cl_kernel stage = kernel(host, "stage");
    give(stage, 0, on_device);
    size_t wrong = 0;
    for (size_t round = 0; round < rounds; round++) {
        for (size_t i = 0; i < count; i++)
            entries[i] = (struct entry){(unsigned)(chance() * 1e9f), (unsigned)i, chance(), (unsigned)(i + 1)};
        send(host, on_device, entries, count * sizeof *entries);
        for (unsigned block = 2; block <= count; block *= 2)
            for (unsigned distance = block / 2; distance > 0; distance /= 2) {
                give(stage, 1, distance);
                give(stage, 2, block);
                launch(host, stage, count / 2, 64);
            }
        fetch(host, on_device, entries, count * sizeof *entries);
        for (size_t i = 1; i < count; i++)
            wrong += entries[i - 1].key > entries[i].key;
    }
    printf("%zu records out of order\n", wrong);
    return wrong > 0;
}
