/* What the versions of list share: orders of a book, linked in the order in which they came, which is not the order in
 * memory. A version defines before it: the type `book`, allocate, append, pending, and the hotspot `settle`.
 * SPDX-License-Identifier: MIT */
int main(int argc, char **argv)
{
    const struct options o = read_options(argc, argv, 100000, 60, 30000, 50000000);
    struct stopwatch w = new_stopwatch(&o);
    struct checksum hash = {0, 0.0};
    long *place = checked(malloc((size_t)o.size * sizeof *place));
    book b = allocate(o.size);
    uint64_t seed = 1;
    for (long i = 0; i < o.size; i++) {
        const long j = (long)((double)(i + 1) * next_random(&seed));
        place[i] = place[j];
        place[j] = i;
    }
    for (long i = 0; i < o.size; i++) {
        const double price = 90.0 + 20.0 * next_random(&seed);
        append(b, place[i], i, price, 1.0 + 99.0 * next_random(&seed));
    }
    for (long step = 0; step < o.steps; step++) {
        start(&w);
        const double settled = settle(b, o.sweeps, 95.0 + (double)(step % 11), 0.9375);
        stop(&w);
        hash = mix(hash, settled);
    }
    hash = mix(hash, pending(b));
    finish(&o, &w, hash);
    free(place);
}
