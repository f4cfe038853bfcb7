/* list.c with what settling needs in nodes of their own, linked by 32-bit numbers. SPDX-License-Identifier: MIT */
#include "../common.h"

struct node {
    double price, quantity;
    int32_t next;
};

struct rest {
    int64_t id, customer;
    char note[24];
};

struct book {
    struct node *node;
    struct rest *rest;
    int32_t first, last;
};

typedef struct book *book;

/* Each order at or below the price is partly settled; returns the turnover. */
__attribute__((noinline)) double settle(book b, long sweeps, double price, double keep)
{
    double sum = 0.0;
    struct node *o = b->node;
    for (long s = 0; s < sweeps; s++, keep_sweeps_apart())
        for (int32_t i = b->first; i >= 0; i = o[i].next)
            if (o[i].price <= price) {
                sum += o[i].price * o[i].quantity * (1.0 - keep);
                o[i].quantity *= keep;
            }
    return sum;
}

static book allocate(long n)
{
    book b = checked(malloc(sizeof *b));
    b->node = aligned((size_t)n, sizeof *b->node);
    b->rest = checked(malloc((size_t)n * sizeof *b->rest));
    b->first = b->last = -1;
    return b;
}

static void append(book b, long place, long id, double price, double quantity)
{
    b->node[place] = (struct node){price, quantity, -1};
    b->rest[place] = (struct rest){id, id % 1000, ""};
    if (b->last >= 0)
        b->node[b->last].next = (int32_t)place;
    else
        b->first = (int32_t)place;
    b->last = (int32_t)place;
}

static double pending(book b)
{
    double sum = 0.0;
    for (int32_t i = b->first; i >= 0; i = b->node[i].next)
        sum += b->node[i].quantity;
    return sum;
}

#include "list.h"
