/* scan.c with what the query filters by and what it sums in structures of their own. SPDX-License-Identifier: MIT */
#include "../common.h"

struct filtered {
    int32_t date, quantity;
};

struct summed {
    double price, discount;
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

__attribute__((noinline)) double revenue(const struct filtered *filter, const struct summed *row, long n, long sweeps, struct query q)
{
    double sum = 0.0;
    for (long s = 0; s < sweeps; s++, keep_sweeps_apart())
        for (long i = 0; i < n; i++)
            if (filter[i].date >= q.from && filter[i].date < q.to && filter[i].quantity < q.below)
                sum += row[i].price * row[i].discount;
    return sum;
}

int main(int argc, char **argv)
{
    const struct options o = read_options(argc, argv, 1000000, 200, 1, 100000000);
    const size_t n = (size_t)o.size;
    struct filtered *filter = aligned(n, sizeof *filter);
    struct summed *row = aligned(n, sizeof *row);
    struct rest *rest = aligned(n, sizeof *rest);
    struct stopwatch w = new_stopwatch(&o);
    w.period = 73; /* as many queries */
    struct checksum hash = {0, 0.0};
    uint64_t seed = 1;
    for (long i = 0; i < o.size; i++) {
        memset(&rest[i], 0, sizeof rest[i]);
        rest[i].id = i;
        filter[i].date = (int32_t)(3650.0 * next_random(&seed));
        filter[i].quantity = (int32_t)(50.0 * next_random(&seed));
        row[i].price = 1000.0 * next_random(&seed);
        row[i].discount = 0.125 * next_random(&seed);
        rest[i].tax = 0.0625;
    }
    for (long step = 0; step < o.steps; step++) {
        const int32_t day = (int32_t)(step * 29 % 73 * 40);
        const struct query q = {day, day + 730, 24};
        start(&w);
        const double sum = revenue(filter, row, o.size, o.sweeps, q);
        stop(&w);
        hash = mix(hash, sum);
    }
    finish(&o, &w, hash);
    free(filter);
    free(row);
    free(rest);
}
