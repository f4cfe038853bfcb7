// Triangulations of polygons with rough outlines, with earcut: cut CORNERS POLYGONS.
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <earcut.hpp>
#include <vector>

int main(int argc, char **argv)
{
    int corners = argc > 1 ? atoi(argv[1]) : 2000, polygons = argc > 2 ? atoi(argv[2]) : 20;
    size_t sum = 0;
    for (int p = 0; p < polygons; p++) {
        std::vector<std::vector<std::array<double, 2>>> polygon(1);
        for (int i = 0; i < corners; i++) {
            double phi = 2 * 3.14159265358979 * i / corners;
            double r = 100 + 30 * sin(7 * phi + p) + 8 * sin(61 * phi) + (i * 37 % 11) * 0.2;
            polygon[0].push_back({r * cos(phi), r * sin(phi)});
        }
        for (unsigned i : mapbox::earcut<unsigned>(polygon))
            sum = sum * 31 + i;
    }
    printf("%zx\n", sum);
    return 0;
}
