/* European options priced by the formula of Black and Scholes: computation, not memory.
 * SPDX-License-Identifier: MIT */
#include "../common.h"
#include <math.h>

struct terms {
    double spot, strike, years, rate, volatility;
};

struct contract {
    int64_t id;
    char symbol[8];
    double spot, strike, years, rate, volatility;
    double call, put;
};

typedef struct contract *contracts;

__attribute__((noinline)) void price(contracts o, long n, long sweeps)
{
    for (long s = 0; s < sweeps; s++, keep_sweeps_apart())
        for (long i = 0; i < n; i++) {
            const double spot = o[i].spot, strike = o[i].strike, years = o[i].years;
            const double rate = o[i].rate, volatility = o[i].volatility;
            const double deviation = volatility * sqrt(years);
            const double d1 = (log(spot / strike) + (rate + 0.5 * volatility * volatility) * years) / deviation;
            const double d2 = d1 - deviation;
            const double discounted = strike * exp(-rate * years);
            const double n1 = 0.5 * erfc(-d1 * 0.70710678118654752), n2 = 0.5 * erfc(-d2 * 0.70710678118654752);
            const double value = spot * n1 - discounted * n2;
            o[i].call = value;
            o[i].put = value + discounted - spot;
        }
}

static contracts allocate(long n)
{
    return checked(calloc((size_t)n, sizeof(struct contract)));
}

static void put(contracts o, long i, struct terms t)
{
    o[i] = (struct contract){i, "XYZ", t.spot, t.strike, t.years, t.rate, t.volatility, 0.0, 0.0};
}

static double *spot(contracts o, long i)
{
    return &o[i].spot;
}

static double call_price(contracts o, long i)
{
    return o[i].call;
}

static double put_price(contracts o, long i)
{
    return o[i].put;
}

#include "options.h"
