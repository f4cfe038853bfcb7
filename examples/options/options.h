/* What the versions of options share: a book of contracts whose spot prices move between two calls. A version defines
 * before it: the type `contracts`, allocate, put, spot, call_price, put_price, and the hotspot `price`.
 * SPDX-License-Identifier: MIT */
int main(int argc, char **argv)
{
    const struct options o = read_options(argc, argv, 100000, 40, 500, 50000000);
    struct stopwatch w = new_stopwatch(&o);
    struct checksum hash = {0, 0.0};
    contracts book = allocate(o.size);
    uint64_t seed = 1;
    for (long i = 0; i < o.size; i++) {
        struct terms t;
        t.spot = 50.0 + 100.0 * next_random(&seed);
        t.strike = 50.0 + 100.0 * next_random(&seed);
        t.years = 0.25 + next_random(&seed);
        t.rate = 0.0625 * next_random(&seed);
        t.volatility = 0.125 + 0.5 * next_random(&seed);
        put(book, i, t);
    }
    for (long step = 0; step < o.steps; step++) {
        start(&w);
        price(book, o.size, o.sweeps);
        stop(&w);
        for (long i = step % 7; i < o.size; i += 7)
            *spot(book, i) += 0.0625;
    }
    for (long i = 0; i < o.size; i++)
        hash = mix(mix(hash, call_price(book, i)), put_price(book, i));
    finish(&o, &w, hash);
}
