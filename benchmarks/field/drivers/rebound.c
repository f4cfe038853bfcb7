/* Planetesimals around a star, with REBOUND: rebound BODIES STEPS. */
#include "rebound.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    int bodies = argc > 1 ? atoi(argv[1]) : 1000, steps = argc > 2 ? atoi(argv[2]) : 300;
    struct reb_simulation *r = reb_simulation_create();
    r->integrator = REB_INTEGRATOR_LEAPFROG;
    r->gravity = REB_GRAVITY_BASIC;
    r->dt = 1e-3;
    r->softening = 1e-3;
    r->rand_seed = 23;
    struct reb_particle star = {.m = 1};
    reb_simulation_add(r, star);
    for (int i = 0; i < bodies; i++) {
        double a = 0.5 + i / (double)bodies, phi = i * 2.399963, v = sqrt(1 / a);
        struct reb_particle p = {.x = a * cos(phi), .y = a * sin(phi), .z = 0.01 * sin(7.0 * i), .m = 1e-7};
        p.vx = -v * sin(phi);
        p.vy = v * cos(phi);
        reb_simulation_add(r, p);
    }
    reb_simulation_steps(r, (unsigned)steps);
    double sum = 0;
    for (int i = 0; i < (int)r->N; i++)
        sum += r->particles[i].x + r->particles[i].y;
    printf("sum %.9f\n", sum);
    return 0;
}
