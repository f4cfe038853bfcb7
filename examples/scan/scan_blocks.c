/* scan.c with the columns of the query in blocks of eight rows: at -O3 a compiler writes the loop over a block out, and each
 * place in it has branches of its own. SPDX-License-Identifier: MIT */
#include "../common.h"

enum { ROWS = 8 };

struct block {
    int32_t date[ROWS], quantity[ROWS];
    double price[ROWS], discount[ROWS];
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

/* The last block may be partly empty; no query wants what is there. */
__attribute__((noinline)) double revenue(const struct block *row, long n, long sweeps, struct query q)
{
    double sum = 0.0;
    for (long s = 0; s < sweeps; s++, keep_sweeps_apart())
        for (long b = 0; b < (n + ROWS - 1) / ROWS; b++)
            for (int l = 0; l < ROWS; l++)
                if (row[b].date[l] >= q.from && row[b].date[l] < q.to && row[b].quantity[l] < q.below)
                    sum += row[b].price[l] * row[b].discount[l];
    return sum;
}

int main(int argc, char **argv)
{
    const struct options o = read_options(argc, argv, 1000000, 200, 1, 100000000);
    const size_t n = (size_t)o.size, blocks = (n + ROWS - 1) / ROWS;
    struct block *row = aligned(blocks, sizeof *row);
    struct rest *rest = aligned(n, sizeof *rest);
    struct stopwatch w = new_stopwatch(&o);
    w.period = 73; /* as many queries */
    struct checksum hash = {0, 0.0};
    uint64_t seed = 1;
    for (int l = 0; l < ROWS; l++)
        row[blocks - 1].quantity[l] = INT32_MAX;
    for (long i = 0; i < o.size; i++) {
        struct block *b = &row[i / ROWS];
        memset(&rest[i], 0, sizeof rest[i]);
        rest[i].id = i;
        b->date[i % ROWS] = (int32_t)(3650.0 * next_random(&seed));
        b->quantity[i % ROWS] = (int32_t)(50.0 * next_random(&seed));
        b->price[i % ROWS] = 1000.0 * next_random(&seed);
        b->discount[i % ROWS] = 0.125 * next_random(&seed);
        rest[i].tax = 0.0625;
    }
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
    free(rest);
}
