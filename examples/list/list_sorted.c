/* list.c with the same nodes, moved in memory into the order of the list, as a copying allocator would.
 * SPDX-License-Identifier: MIT */
#include "../common.h"

struct order {
    struct order *next;
    int64_t id, customer;
    double price, quantity;
    char note[24];
};

struct book {
    struct order *pool, *first;
    long n;
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
    b->first = NULL;
    b->n = 0;
    return b;
}

static void append(book b, long place, long id, double price, double quantity)
{
    struct order *o = &b->pool[b->n];
    (void)place;
    *o = (struct order){NULL, id, id % 1000, price, quantity, ""};
    if (b->n++ > 0)
        o[-1].next = o;
    b->first = b->pool;
}

static double pending(book b)
{
    double sum = 0.0;
    for (const struct order *o = b->first; o != NULL; o = o->next)
        sum += o->quantity;
    return sum;
}

#include "list.h"
