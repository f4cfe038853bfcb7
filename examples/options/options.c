/* European options priced by the formula of Black and Scholes: computation, not memory. SPDX-License-Identifier: MIT */
#include "../common.h"
#include <math.h>

struct option {
    double spot, strike, years, rate, volatility;
    double call, put;
};

__attribute__((noinline)) void price(struct option *o, long n, long sweeps)
{
    for (long s = 0; s < sweeps; s++, keep_sweeps_apart())
        for (long i = 0; i < n; i++) {
            const double deviation = o[i].volatility * sqrt(o[i].years);
            const double d1 =
                (log(o[i].spot / o[i].strike) + (o[i].rate + 0.5 * o[i].volatility * o[i].volatility) * o[i].years) / deviation;
            const double d2 = d1 - deviation;
            const double discounted = o[i].strike * exp(-o[i].rate * o[i].years);
            const double n1 = 0.5 * erfc(-d1 * 0.70710678118654752), n2 = 0.5 * erfc(-d2 * 0.70710678118654752);
            o[i].call = o[i].spot * n1 - discounted * n2;
            o[i].put = o[i].call + discounted - o[i].spot;
        }
}

int main(int argc, char **argv)
{
    const struct options o = read_options(argc, argv, 300000, 60, 4000, 100000000);
    struct option *book = checked(malloc((size_t)o.size * sizeof *book));
    struct stopwatch w = new_stopwatch(&o);
    struct checksum hash = {0, 0.0};
    uint64_t seed = 1;
    for (long i = 0; i < o.size; i++) {
        book[i].spot = 50.0 + 100.0 * next_random(&seed);
        book[i].strike = 50.0 + 100.0 * next_random(&seed);
        book[i].years = 0.25 + next_random(&seed);
        book[i].rate = 0.0625 * next_random(&seed);
        book[i].volatility = 0.125 + 0.5 * next_random(&seed);
    }
    for (long step = 0; step < o.steps; step++) {
        start(&w);
        price(book, o.size, o.sweeps);
        stop(&w);
        for (long i = step % 7; i < o.size; i += 7)
            book[i].spot += 0.0625;
    }
    for (long i = 0; i < o.size; i++)
        hash = mix(mix(hash, book[i].call), book[i].put);
    finish(&o, &w, hash);
    free(book);
}
