/* options.c with the numbers in a structure of their own. SPDX-License-Identifier: MIT */
#include "../common.h"
#include <math.h>

struct terms {
    double spot, strike, years, rate, volatility;
};

struct name {
    int64_t id;
    char symbol[8];
};

struct numbers {
    double spot, strike, years, rate, volatility;
    double call, put;
};

struct book {
    struct name *name;
    struct numbers *numbers;
};

typedef struct book *contracts;

__attribute__((noinline)) void price(contracts book, long n, long sweeps)
{
    struct numbers *o = book->numbers;
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
    contracts book = checked(malloc(sizeof *book));
    book->name = aligned((size_t)n, sizeof *book->name);
    book->numbers = aligned((size_t)n, sizeof *book->numbers);
    return book;
}

static void put(contracts book, long i, struct terms t)
{
    book->name[i] = (struct name){i, "XYZ"};
    book->numbers[i] = (struct numbers){t.spot, t.strike, t.years, t.rate, t.volatility, 0.0, 0.0};
}

static double *spot(contracts book, long i)
{
    return &book->numbers[i].spot;
}

static double call_price(contracts book, long i)
{
    return book->numbers[i].call;
}

static double put_price(contracts book, long i)
{
    return book->numbers[i].put;
}

#include "options.h"
