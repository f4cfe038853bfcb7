/* sampo.c with a structure for what each section uses: two, six and four numbers. SPDX-License-Identifier: MIT */
#include "../common.h"

struct life {
    int state, age;
};

struct flight {
    float x, y, energy, eggs, wait, host;
};

struct blood {
    float sex, origin, dose, genes;
};

struct parts {
    struct life *life;
    struct flight *flight;
    struct blood *blood;
};

typedef struct parts *agents;

#define STATE(a, i) ((a)->life[i].state)
#define AGE(a, i) ((a)->life[i].age)
#define X(a, i) ((a)->flight[i].x)
#define Y(a, i) ((a)->flight[i].y)
#define ENERGY(a, i) ((a)->flight[i].energy)
#define EGGS(a, i) ((a)->flight[i].eggs)
#define WAIT(a, i) ((a)->flight[i].wait)
#define HOST(a, i) ((a)->flight[i].host)
#define SEX(a, i) ((a)->blood[i].sex)
#define ORIGIN(a, i) ((a)->blood[i].origin)
#define DOSE(a, i) ((a)->blood[i].dose)
#define GENES(a, i) ((a)->blood[i].genes)

static agents allocate(long n)
{
    agents a = checked(malloc(sizeof *a));
    a->life = aligned((size_t)n, sizeof *a->life);
    a->flight = aligned((size_t)n, sizeof *a->flight);
    a->blood = aligned((size_t)n, sizeof *a->blood);
    return a;
}

#include "sampo.h"
