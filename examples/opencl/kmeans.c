/* Clusters of points; the host moves the centres in each step: kmeans [POINTS] [STEPS] [KERNELS]. SPDX-License-Identifier: MIT */
#include "host.h"

enum { SIDES = 8, CENTRES = 16 };

struct point {
    float at[SIDES];
    int cluster;
    float distance;
};

/* Each centre to the middle of the points that are nearest to it. */
static void moved(float centres[CENTRES][SIDES], const struct point *points, size_t count)
{
    double sums[CENTRES][SIDES] = {{0}}, members[CENTRES] = {0};
    for (size_t i = 0; i < count; i++) {
        members[points[i].cluster]++;
        for (int k = 0; k < SIDES; k++)
            sums[points[i].cluster][k] += points[i].at[k];
    }
    for (int c = 0; c < CENTRES; c++)
        for (int k = 0; k < SIDES && members[c] > 0; k++)
            centres[c][k] = (float)(sums[c][k] / members[c]);
}

int main(int argc, char **argv)
{
    const size_t count = number(argc, argv, 1, 1 << 18), steps = number(argc, argv, 2, 10);
    struct point *points = memory(count, sizeof *points);
    float centres[CENTRES][SIDES];
    for (size_t i = 0; i < count; i++)
        for (int k = 0; k < SIDES; k++)
            points[i].at[k] = chance();
    for (int c = 0; c < CENTRES; c++)
        memcpy(centres[c], points[(size_t)c % count].at, sizeof centres[c]);
    struct host host = start(argc > 3 ? argv[3] : "kmeans.cl", "");
    cl_mem all = buffer(host, points, count * sizeof *points), middle = buffer(host, centres, sizeof centres);
    cl_kernel assign = kernel(host, "assign");
    const int number_of_centres = CENTRES;
    give(assign, 0, all);
    give(assign, 1, middle);
    give(assign, 2, number_of_centres);
    for (size_t step = 0; step < steps; step++) {
        launch(host, assign, count, 64);
        fetch(host, all, points, count * sizeof *points);
        moved(centres, points, count);
        send(host, middle, centres, sizeof centres);
    }
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += points[i].distance;
    printf("%.6f\n", sum / (double)count);
    return 0;
}
