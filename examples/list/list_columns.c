/* list.c as arrays of prices and quantities in the order of the list. SPDX-License-Identifier: MIT */
#include "../common.h"

struct rest {
    int64_t id, customer;
    char note[24];
};

struct book {
    double *price, *quantity;
    struct rest *rest;
    long n;
};

typedef struct book *book;

/* Each order at or below the price is partly settled; returns the turnover. */
__attribute__((noinline)) double settle(book b, long sweeps, double price, double keep)
{
    double sum = 0.0;
    const double *prices = b->price;
    double *quantity = b->quantity;
    for (long s = 0; s < sweeps; s++, keep_sweeps_apart())
        for (long i = 0; i < b->n; i++)
            if (prices[i] <= price) {
                sum += prices[i] * quantity[i] * (1.0 - keep);
                quantity[i] *= keep;
            }
    return sum;
}

static book allocate(long n)
{
    book b = checked(malloc(sizeof *b));
    b->price = aligned((size_t)n, sizeof *b->price);
    b->quantity = aligned((size_t)n, sizeof *b->quantity);
    b->rest = checked(malloc((size_t)n * sizeof *b->rest));
    b->n = 0;
    return b;
}

static void append(book b, long place, long id, double price, double quantity)
{
    (void)place;
    b->price[b->n] = price;
    b->quantity[b->n] = quantity;
    b->rest[b->n++] = (struct rest){id, id % 1000, ""};
}

static double pending(book b)
{
    double sum = 0.0;
    for (long i = 0; i < b->n; i++)
        sum += b->quantity[i];
    return sum;
}

#include "list.h"
