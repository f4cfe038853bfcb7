/* particles.c with an array for each field. SPDX-License-Identifier: MIT */
#include "../common.h"

struct particles {
    double *x, *y, *z;
    double *vx, *vy, *vz;
    double *m, *q, *age;
    double *P;
};

__attribute__((noinline)) void update_pressure(const struct particles *p, long n, long sweeps, double keep)
{
    const double *vx = p->vx, *m = p->m;
    double *P = p->P;
    for (long s = 0; s < sweeps; s++, keep_sweeps_apart())
        for (long i = 0; i < n; i++)
            P[i] = keep * P[i] + m[i] * vx[i] * vx[i];
}

static void allocate(struct particles *p, long n)
{
    double **arrays[] = {&p->x, &p->y, &p->z, &p->vx, &p->vy, &p->vz, &p->m, &p->q, &p->age, &p->P};
    for (size_t k = 0; k < sizeof arrays / sizeof *arrays; k++)
        *arrays[k] = aligned((size_t)n, sizeof(double));
}

static void initialise(struct particles *p, long n)
{
    uint64_t seed = 1;
    for (long i = 0; i < n; i++) {
        p->x[i] = next_random(&seed);
        p->y[i] = next_random(&seed);
        p->z[i] = next_random(&seed);
        p->vx[i] = next_random(&seed) - 0.5;
        p->vy[i] = next_random(&seed) - 0.5;
        p->vz[i] = next_random(&seed) - 0.5;
        p->m[i] = 1.0 + next_random(&seed);
        p->q[i] = next_random(&seed) - 0.5;
        p->age[i] = 0.0;
        p->P[i] = 0.0;
    }
}

static struct checksum checksum_of(const struct particles *p, long n)
{
    struct checksum hash = {0, 0.0};
    for (long i = 0; i < n; i++)
        hash = mix(mix(mix(hash, p->x[i]), p->q[i]), p->P[i]);
    return hash;
}

int main(int argc, char **argv)
{
    const struct options o = read_options(argc, argv, 1300000, 200, 100000, 100000000);
    struct particles p;
    struct stopwatch w = new_stopwatch(&o);
    allocate(&p, o.size);
    initialise(&p, o.size);
    for (long step = 0; step < o.steps; step++) {
        start(&w);
        update_pressure(&p, o.size, o.sweeps, 0.875);
        stop(&w);
    }
    finish(&o, &w, checksum_of(&p, o.size));
}
