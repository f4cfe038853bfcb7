/* What the versions of drift share. A version defines before it: the type `particles`, allocate, put, coordinate, and the
 * hotspot `drift`. SPDX-License-Identifier: MIT */
int main(int argc, char **argv)
{
    const struct options o = read_options(argc, argv, 400000, 100, 100000, 50000000);
    struct stopwatch w = new_stopwatch(&o);
    struct checksum hash = {0, 0.0};
    particles p = allocate(o.size);
    uint64_t seed = 1;
    for (long i = 0; i < o.size; i++)
        for (int k = 0; k < 3; k++) {
            const double x = next_random(&seed);
            put(p, i, k, x, next_random(&seed) - 0.5);
        }
    for (long step = 0; step < o.steps; step++) {
        start(&w);
        drift(p, o.size, o.sweeps, 0.0078125);
        stop(&w);
    }
    for (long i = 0; i < o.size; i++)
        for (int k = 0; k < 3; k++)
            hash = mix(hash, coordinate(p, i, k));
    finish(&o, &w, hash);
}
