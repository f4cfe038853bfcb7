// An index of random points, and queries, with hnswlib: neighbours POINTS DIMENSION.
#include <cstdio>
#include <cstdlib>
#include <hnswlib/hnswlib.h>
#include <random>

int main(int argc, char **argv)
{
    int count = argc > 1 ? atoi(argv[1]) : 10000, dimension = argc > 2 ? atoi(argv[2]) : 32;
    std::mt19937 draw(23);
    std::uniform_real_distribution<float> unit;
    std::vector<float> points((size_t)count * dimension);
    for (float &x : points)
        x = unit(draw);
    hnswlib::L2Space space(dimension);
    hnswlib::HierarchicalNSW<float> index(&space, count, 16, 100, 23);
    for (int i = 0; i < count; i++)
        index.addPoint(&points[(size_t)i * dimension], i);
    double sum = 0;
    for (int i = 0; i < count; i++)
        for (auto found = index.searchKnn(&points[(size_t)i * dimension], 5); !found.empty(); found.pop())
            sum += found.top().first;
    printf("sum %.6f\n", sum);
    return 0;
}
