/* What the versions of nbody share: a cluster of bodies, of which one block after the other is moved by the attraction of
 * all, as codes with block time steps do. A version defines before it: the type `bodies`, allocate, put, state_of, kick, and
 * the hotspot `attract`. SPDX-License-Identifier: MIT */
static bodies cluster(long n)
{
    bodies b = allocate(n);
    uint64_t seed = 1;
    for (long i = 0; i < n; i++) {
        struct state s;
        for (int k = 0; k < 3; k++) {
            s.x[k] = (float)(2.0 * next_random(&seed) - 1.0);
            s.v[k] = (float)(0.125 * (next_random(&seed) - 0.5));
        }
        s.m = (float)((0.5 + next_random(&seed)) / (double)n);
        put(b, i, s);
    }
    return b;
}

int main(int argc, char **argv)
{
    const struct options o = read_options(argc, argv, 60000, 60, 1, 50000000);
    struct stopwatch w = new_stopwatch(&o);
    struct checksum hash = {0, 0.0};
    bodies b = cluster(o.size);
    if (o.size < BLOCK)
        fail(argv[0], "SIZE is at least 64");
    for (long step = 0; step < o.steps; step++) {
        const long first = step % (o.size / BLOCK) * BLOCK;
        start(&w);
        attract(b, o.size, o.sweeps, first, BLOCK, 1e-4f);
        stop(&w);
        for (long i = first; i < first + BLOCK; i++)
            kick(b, i, 0.0078125f);
    }
    for (long i = 0; i < o.size; i++) {
        const struct state s = state_of(b, i);
        for (int k = 0; k < 3; k++)
            hash = mix(mix(hash, (double)s.x[k]), (double)s.v[k]);
    }
    finish(&o, &w, hash);
}
