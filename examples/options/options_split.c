/* options.c with the terms of the contracts and the results in structures of their own. SPDX-License-Identifier: MIT */
#include "../common.h"
#include <math.h>

struct terms {
    double spot, strike, years, rate, volatility;
};

struct name {
    int64_t id;
    char symbol[8];
};

struct result {
    double call, put;
};

struct book {
    struct name *name;
    struct terms *terms;
    struct result *result;
};

typedef struct book *contracts;

__attribute__((noinline)) void price(contracts book, long n, long sweeps)
{
    const struct terms *o = book->terms;
    struct result *result = book->result;
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
            result[i].call = value;
            result[i].put = value + discounted - spot;
        }
}

static contracts allocate(long n)
{
    contracts book = checked(malloc(sizeof *book));
    book->name = aligned((size_t)n, sizeof *book->name);
    book->terms = aligned((size_t)n, sizeof *book->terms);
    book->result = aligned((size_t)n, sizeof *book->result);
    return book;
}

static void put(contracts book, long i, struct terms t)
{
    book->name[i] = (struct name){i, "XYZ"};
    book->terms[i] = t;
}

static double *spot(contracts book, long i)
{
    return &book->terms[i].spot;
}

static double call_price(contracts book, long i)
{
    return book->result[i].call;
}

static double put_price(contracts book, long i)
{
    return book->result[i].put;
}

#include "options.h"
