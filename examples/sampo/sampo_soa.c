/* sampo.c with an array for each number. SPDX-License-Identifier: MIT */
#include "../common.h"

struct columns {
    int *state, *age;
    float *x, *y, *energy, *eggs, *wait, *host;
    float *sex, *origin, *dose, *genes;
};

typedef struct columns *agents;

#define STATE(a, i) ((a)->state[i])
#define AGE(a, i) ((a)->age[i])
#define X(a, i) ((a)->x[i])
#define Y(a, i) ((a)->y[i])
#define ENERGY(a, i) ((a)->energy[i])
#define EGGS(a, i) ((a)->eggs[i])
#define WAIT(a, i) ((a)->wait[i])
#define HOST(a, i) ((a)->host[i])
#define SEX(a, i) ((a)->sex[i])
#define ORIGIN(a, i) ((a)->origin[i])
#define DOSE(a, i) ((a)->dose[i])
#define GENES(a, i) ((a)->genes[i])

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

#include "sampo.h"
