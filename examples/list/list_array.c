/* list.c as an array in the order of the list. SPDX-License-Identifier: MIT */
#include "../common.h"

struct order {
    int64_t id, customer;
    double price, quantity;
    char note[24];
};

struct book {
    struct order *order;
    long n;
};

typedef struct book *book;

/* Each order at or below the price is partly settled; returns the turnover. */
__attribute__((noinline)) double settle(book b, long sweeps, double price, double keep)
{
    double sum = 0.0;
    struct order *o = b->order;
    for (long s = 0; s < sweeps; s++, keep_sweeps_apart())
        for (long i = 0; i < b->n; i++)
            if (o[i].price <= price) {
                sum += o[i].price * o[i].quantity * (1.0 - keep);
                o[i].quantity *= keep;
            }
    return sum;
}

static book allocate(long n)
{
    book b = checked(malloc(sizeof *b));
    b->order = checked(malloc((size_t)n * sizeof *b->order));
    b->n = 0;
    return b;
}

static void append(book b, long place, long id, double price, double quantity)
{
    (void)place;
    b->order[b->n++] = (struct order){id, id % 1000, price, quantity, ""};
}

static double pending(book b)
{
    double sum = 0.0;
    for (long i = 0; i < b->n; i++)
        sum += b->order[i].quantity;
    return sum;
}

#include "list.h"
