/* A table of orders, row by row; a query sums over those that a filter leaves. SPDX-License-Identifier: MIT */
#include "../common.h"

struct order {
    int64_t id, customer;
    int32_t date, quantity;
    double price, discount, tax;
    char status, mode[7];
    char comment[40];
};

struct query {
    int32_t from, to, below;
};

/* Revenue that the discounts of one period cost. */
__attribute__((noinline)) double revenue(const struct order *row, long n, long sweeps, struct query q)
{
    double sum = 0.0;
    for (long s = 0; s < sweeps; s++, keep_sweeps_apart())
        for (long i = 0; i < n; i++)
            if (row[i].date >= q.from && row[i].date < q.to && row[i].quantity < q.below)
                sum += row[i].price * row[i].discount;
    return sum;
}

static void initialise(struct order *row, long n)
{
    uint64_t seed = 1;
    for (long i = 0; i < n; i++) {
        memset(&row[i], 0, sizeof row[i]);
        row[i].id = i;
        row[i].date = (int32_t)(3650.0 * next_random(&seed));
        row[i].quantity = (int32_t)(50.0 * next_random(&seed));
        row[i].price = 1000.0 * next_random(&seed);
        row[i].discount = 0.125 * next_random(&seed);
        row[i].tax = 0.0625;
    }
}

int main(int argc, char **argv)
{
    const struct options o = read_options(argc, argv, 1000000, 200, 1, 100000000);
    struct order *row = checked(malloc((size_t)o.size * sizeof *row));
    struct stopwatch w = new_stopwatch(&o);
    w.period = 73; /* as many queries */
    struct checksum hash = {0, 0.0};
    initialise(row, o.size);
    for (long step = 0; step < o.steps; step++) {
        const int32_t day = (int32_t)(step * 29 % 73 * 40);
        const struct query q = {day, day + 730, 24};
        start(&w);
        const double sum = revenue(row, o.size, o.sweeps, q);
        stop(&w);
        hash = mix(hash, sum);
    }
    finish(&o, &w, hash);
    free(row);
}
