/* scan.c with a column for each field of the query. SPDX-License-Identifier: MIT */
#include "../common.h"

struct columns {
    int32_t *date, *quantity;
    double *price, *discount;
};

struct rest {
    int64_t id, customer;
    double tax;
    char status, mode[7];
    char comment[40];
};

struct query {
    int32_t from, to, below;
};

__attribute__((noinline)) double revenue(const struct columns *columns, long n, long sweeps, struct query q)
{
    double sum = 0.0;
    const int32_t *date = columns->date, *quantity = columns->quantity;
    const double *price = columns->price, *discount = columns->discount;
    for (long s = 0; s < sweeps; s++, keep_sweeps_apart())
        for (long i = 0; i < n; i++)
            if (date[i] >= q.from && date[i] < q.to && quantity[i] < q.below)
                sum += price[i] * discount[i];
    return sum;
}

int main(int argc, char **argv)
{
    const struct options o = read_options(argc, argv, 1000000, 200, 1, 100000000);
    const size_t n = (size_t)o.size;
    struct columns row = {aligned(n, sizeof *row.date), aligned(n, sizeof *row.quantity), aligned(n, sizeof *row.price),
                          aligned(n, sizeof *row.discount)};
    struct rest *rest = aligned(n, sizeof *rest);
    struct stopwatch w = new_stopwatch(&o);
    w.period = 73; /* as many queries */
    struct checksum hash = {0, 0.0};
    uint64_t seed = 1;
    for (long i = 0; i < o.size; i++) {
        memset(&rest[i], 0, sizeof rest[i]);
        rest[i].id = i;
        row.date[i] = (int32_t)(3650.0 * next_random(&seed));
        row.quantity[i] = (int32_t)(50.0 * next_random(&seed));
        row.price[i] = 1000.0 * next_random(&seed);
        row.discount[i] = 0.125 * next_random(&seed);
        rest[i].tax = 0.0625;
    }
    for (long step = 0; step < o.steps; step++) {
        const int32_t day = (int32_t)(step * 29 % 73 * 40);
        const struct query q = {day, day + 730, 24};
        start(&w);
        const double sum = revenue(&row, o.size, o.sweeps, q);
        stop(&w);
        hash = mix(hash, sum);
    }
    finish(&o, &w, hash);
    free(row.date);
    free(row.quantity);
    free(row.price);
    free(row.discount);
    free(rest);
}
