/* A linked list: every address is read from the one before, and no layout of one array describes it. What helps is another
 * data structure. SPDX-License-Identifier: MIT */
#include "../common.h"

struct order {
    struct order *next;
    int64_t id, customer;
    double price, quantity;
    char note[24];
};

struct book {
    struct order *pool, *first, *last;
};

typedef struct book *book;

/* Each order at or below the price is partly settled; returns the turnover. */
__attribute__((noinline)) double settle(book b, long sweeps, double price, double keep)
{
    double sum = 0.0;
    for (long s = 0; s < sweeps; s++, keep_sweeps_apart())
        for (struct order *o = b->first; o != NULL; o = o->next)
            if (o->price <= price) {
                sum += o->price * o->quantity * (1.0 - keep);
                o->quantity *= keep;
            }
    return sum;
}

static book allocate(long n)
{
    book b = checked(malloc(sizeof *b));
    b->pool = checked(malloc((size_t)n * sizeof *b->pool));
    b->first = b->last = NULL;
    return b;
}

/* The order `id`, at that place of the pool. */
static void append(book b, long place, long id, double price, double quantity)
{
    struct order *o = &b->pool[place];
    *o = (struct order){NULL, id, id % 1000, price, quantity, ""};
    if (b->last != NULL)
        b->last->next = o;
    else
        b->first = o;
    b->last = o;
}

static double pending(book b)
{
    double sum = 0.0;
    for (const struct order *o = b->first; o != NULL; o = o->next)
        sum += o->quantity;
    return sum;
}

#include "list.h"
