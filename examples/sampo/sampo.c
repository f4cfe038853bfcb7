/* Agents of twelve numbers as records. SPDX-License-Identifier: MIT */
#include "../common.h"

struct agent {
    int state, age;
    float x, y, energy, eggs, wait, host;
    float sex, origin, dose, genes;
};

typedef struct agent *agents;

#define STATE(a, i) ((a)[i].state)
#define AGE(a, i) ((a)[i].age)
#define X(a, i) ((a)[i].x)
#define Y(a, i) ((a)[i].y)
#define ENERGY(a, i) ((a)[i].energy)
#define EGGS(a, i) ((a)[i].eggs)
#define WAIT(a, i) ((a)[i].wait)
#define HOST(a, i) ((a)[i].host)
#define SEX(a, i) ((a)[i].sex)
#define ORIGIN(a, i) ((a)[i].origin)
#define DOSE(a, i) ((a)[i].dose)
#define GENES(a, i) ((a)[i].genes)

static agents allocate(long n)
{
    return aligned((size_t)n, sizeof(struct agent));
}

#include "sampo.h"
