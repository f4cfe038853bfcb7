// A forest over random points, and queries, with Annoy: neighbours POINTS DIMENSION.
#include <cstddef>
#include "annoylib.h"
#include "kissrandom.h"
#include <cstdio>
#include <cstdlib>
#include <random>

int main(int argc, char **argv)
{
    int count = argc > 1 ? atoi(argv[1]) : 60000, dimension = argc > 2 ? atoi(argv[2]) : 40;
    std::mt19937 draw(23);
    std::normal_distribution<float> normal;
    Annoy::AnnoyIndex<int, float, Annoy::Euclidean, Annoy::Kiss64Random, Annoy::AnnoyIndexSingleThreadedBuildPolicy> index(dimension);
    std::vector<float> point(dimension);
    for (int i = 0; i < count; i++) {
        for (float &x : point)
            x = normal(draw);
        index.add_item(i, point.data());
    }
    index.build(10);
    double sum = 0;
    for (int i = 0; i < count / 3; i++) {
        std::vector<int> found;
        std::vector<float> distances;
        index.get_nns_by_item(i, 10, 400, &found, &distances);
        for (float d : distances)
            sum += d;
    }
    printf("sum %.4f\n", sum);
    return 0;
}
