/* options.c with an array for each number. SPDX-License-Identifier: MIT */
#include "../common.h"
#include <math.h>

struct terms {
    double spot, strike, years, rate, volatility;
};

struct name {
    int64_t id;
    char symbol[8];
};

struct arrays {
    struct name *name;
    double *spot, *strike, *years, *rate, *volatility;
    double *call, *put;
};

typedef struct arrays *contracts;

__attribute__((noinline)) void price(contracts o, long n, long sweeps)
{
    for (long s = 0; s < sweeps; s++, keep_sweeps_apart())
        for (long i = 0; i < n; i++) {
            const double spot = o->spot[i], strike = o->strike[i], years = o->years[i];
            const double rate = o->rate[i], volatility = o->volatility[i];
            const double deviation = volatility * sqrt(years);
            const double d1 = (log(spot / strike) + (rate + 0.5 * volatility * volatility) * years) / deviation;
            const double d2 = d1 - deviation;
            const double discounted = strike * exp(-rate * years);
            const double n1 = 0.5 * erfc(-d1 * 0.70710678118654752), n2 = 0.5 * erfc(-d2 * 0.70710678118654752);
            const double value = spot * n1 - discounted * n2;
            o->call[i] = value;
            o->put[i] = value + discounted - spot;
        }
}

static contracts allocate(long n)
{
    contracts o = checked(malloc(sizeof *o));
    double **arrays[] = {&o->spot, &o->strike, &o->years, &o->rate, &o->volatility, &o->call, &o->put};
    for (size_t k = 0; k < sizeof arrays / sizeof *arrays; k++)
        *arrays[k] = aligned((size_t)n, sizeof(double));
    o->name = aligned((size_t)n, sizeof *o->name);
    return o;
}

static void put(contracts o, long i, struct terms t)
{
    o->name[i] = (struct name){i, "XYZ"};
    o->spot[i] = t.spot;
    o->strike[i] = t.strike;
    o->years[i] = t.years;
    o->rate[i] = t.rate;
    o->volatility[i] = t.volatility;
}

static double *spot(contracts o, long i)
{
    return &o->spot[i];
}

static double call_price(contracts o, long i)
{
    return o->call[i];
}

static double put_price(contracts o, long i)
{
    return o->put[i];
}

#include "options.h"
