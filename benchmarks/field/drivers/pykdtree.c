/* Nearest neighbours of random points, with pykdtree's kd-tree: nearest POINTS. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

void *construct_tree_double_int32_t(double *points, int8_t dimensions, uint32_t count, uint32_t leaf);
void search_tree_double_int32_t(void *tree, double *points, double *queries, uint32_t queried, uint32_t neighbours,
                                double farthest, double eps, uint8_t *mask, uint32_t *closest, double *distances);

int main(int argc, char **argv)
{
    uint32_t count = argc > 1 ? (uint32_t)atoi(argv[1]) : 100000, k = 8;
    double *points = malloc(count * 3 * sizeof *points), *distances = malloc((size_t)count * k * sizeof *distances), sum = 0;
    uint32_t *closest = malloc((size_t)count * k * sizeof *closest);
    uint64_t x = 23;
    for (uint32_t i = 0; i < count * 3; i++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        points[i] = (double)(x >> 11) / 9007199254740992.0;
    }
    void *tree = construct_tree_double_int32_t(points, 3, count, 16);
    search_tree_double_int32_t(tree, points, points, count, k, 1e300, 0, 0, closest, distances);
    for (uint32_t i = 0; i < count * k; i++)
        sum += distances[i];
    printf("sum %.9f\n", sum);
    return 0;
}
