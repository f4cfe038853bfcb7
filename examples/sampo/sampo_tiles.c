/* sampo_split.c with each structure in tiles: a cache line for each number of sixteen agents. SPDX-License-Identifier: MIT */
#include "../common.h"

enum { TILE = 16 };

struct life {
    int state[TILE], age[TILE];
};

struct flight {
    float x[TILE], y[TILE], energy[TILE], eggs[TILE], wait[TILE], host[TILE];
};

struct blood {
    float sex[TILE], origin[TILE], dose[TILE], genes[TILE];
};

struct parts {
    struct life *life;
    struct flight *flight;
    struct blood *blood;
};

typedef struct parts *agents;

#define STATE(a, i) ((a)->life[(unsigned long)(i) / TILE].state[(unsigned long)(i) % TILE])
#define AGE(a, i) ((a)->life[(unsigned long)(i) / TILE].age[(unsigned long)(i) % TILE])
#define X(a, i) ((a)->flight[(unsigned long)(i) / TILE].x[(unsigned long)(i) % TILE])
#define Y(a, i) ((a)->flight[(unsigned long)(i) / TILE].y[(unsigned long)(i) % TILE])
#define ENERGY(a, i) ((a)->flight[(unsigned long)(i) / TILE].energy[(unsigned long)(i) % TILE])
#define EGGS(a, i) ((a)->flight[(unsigned long)(i) / TILE].eggs[(unsigned long)(i) % TILE])
#define WAIT(a, i) ((a)->flight[(unsigned long)(i) / TILE].wait[(unsigned long)(i) % TILE])
#define HOST(a, i) ((a)->flight[(unsigned long)(i) / TILE].host[(unsigned long)(i) % TILE])
#define SEX(a, i) ((a)->blood[(unsigned long)(i) / TILE].sex[(unsigned long)(i) % TILE])
#define ORIGIN(a, i) ((a)->blood[(unsigned long)(i) / TILE].origin[(unsigned long)(i) % TILE])
#define DOSE(a, i) ((a)->blood[(unsigned long)(i) / TILE].dose[(unsigned long)(i) % TILE])
#define GENES(a, i) ((a)->blood[(unsigned long)(i) / TILE].genes[(unsigned long)(i) % TILE])

static agents allocate(long n)
{
    const size_t tiles = (size_t)(n + TILE - 1) / TILE;
    agents a = checked(malloc(sizeof *a));
    a->life = aligned(tiles, sizeof *a->life);
    a->flight = aligned(tiles, sizeof *a->flight);
    a->blood = aligned(tiles, sizeof *a->blood);
    return a;
}

#include "sampo.h"
