/* sampo_soa.c with its sections written for SIMD: each array, which is declared not to overlap with others, in a variable of
 * its own. SPDX-License-Identifier: MIT */
#include "../common.h"

struct columns {
    int *state, *age;
    float *x, *y, *energy, *eggs, *wait, *host;
    float *sex, *origin, *dose, *genes;
};

typedef struct columns *agents;

#define STATE(a, i) (all_state[i])
#define AGE(a, i) (all_age[i])
#define X(a, i) (all_x[i])
#define Y(a, i) (all_y[i])
#define ENERGY(a, i) (all_energy[i])
#define EGGS(a, i) (all_eggs[i])
#define WAIT(a, i) (all_wait[i])
#define HOST(a, i) (all_host[i])
#define SEX(a, i) (all_sex[i])
#define ORIGIN(a, i) (all_origin[i])
#define DOSE(a, i) (all_dose[i])
#define GENES(a, i) (all_genes[i])

static agents allocate(long n)
{
    agents a = checked(malloc(sizeof *a));
    int **number[] = {&a->state, &a->age};
    float **column[] = {&a->x, &a->y, &a->energy, &a->eggs, &a->wait,
                        &a->host, &a->sex, &a->origin, &a->dose, &a->genes};
    for (int k = 0; k < 2; k++)
        *number[k] = aligned((size_t)n, sizeof(int));
    for (int k = 0; k < 10; k++)
        *column[k] = aligned((size_t)n, sizeof(float));
    return a;
}

#define EACH_AGENT _Pragma("omp simd") for (long i = 0; i < n; i++)
#define COLUMN(type, name) __attribute__((unused)) type *restrict const all_##name = a->name;
#define NAMED(a)                                                                                        \
    COLUMN(int, state) COLUMN(int, age) COLUMN(float, x) COLUMN(float, y) COLUMN(float, energy)         \
    COLUMN(float, eggs) COLUMN(float, wait) COLUMN(float, host) COLUMN(float, sex) COLUMN(float, origin) \
    COLUMN(float, dose) COLUMN(float, genes)

#include "sampo.h"
