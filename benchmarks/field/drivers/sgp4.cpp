// A catalogue of satellites moved through time, with SGP4: orbits SATELLITES MINUTES.
#include "SGP4.h"
#include <cstdio>
#include <cstdlib>
#include <vector>

int main(int argc, char **argv)
{
    int count = argc > 1 ? atoi(argv[1]) : 2000, minutes = argc > 2 ? atoi(argv[2]) : 1000;
    std::vector<elsetrec> satellites(count);
    const double pi = 3.14159265358979323846;
    for (int i = 0; i < count; i++) {
        double phase = 2 * pi * (i * 0.618034 - (int)(i * 0.618034));
        double motion = (13.0 + i % 29 * 0.1) * 2 * pi / 1440;
        SGP4Funcs::sgp4init(wgs72, 'i', "00005", 26000.0 + i % 100, 2e-5, 0, 0, 0.001 + i % 17 * 1e-3, phase, 0.2 + i % 11 * 0.13,
                            phase * 0.7, motion, phase * 0.3, satellites[i]);
    }
    double sum = 0, r[3], v[3];
    for (int t = 0; t < minutes; t += 5)
        for (int i = 0; i < count; i++) {
            SGP4Funcs::sgp4(satellites[i], t, r, v);
            sum += r[0] + r[1] + r[2];
        }
    printf("sum %.6f\n", sum);
    return 0;
}
