/* What the versions of entities share. A version defines before it: the type `world`, allocate, put, position, and the
 * hotspot `integrate`. SPDX-License-Identifier: MIT */
int main(int argc, char **argv)
{
    const struct options o = read_options(argc, argv, 300000, 100, 30000, 50000000);
    struct stopwatch w = new_stopwatch(&o);
    struct checksum hash = {0, 0.0};
    world e = allocate(o.size);
    uint64_t seed = 1;
    for (long i = 0; i < o.size; i++) {
        float x[3], v[3];
        for (int k = 0; k < 3; k++) {
            x[k] = (float)next_random(&seed);
            v[k] = (float)next_random(&seed) - 0.5f;
        }
        put(e, i, x, v, next_random(&seed) < 0.75 ? MOVING : 0);
    }
    for (long step = 0; step < o.steps; step++) {
        start(&w);
        integrate(e, o.size, o.sweeps, 0.0625f);
        stop(&w);
    }
    for (long i = 0; i < o.size; i++)
        for (int k = 0; k < 3; k++)
            hash = mix(hash, (double)position(e, i, k));
    finish(&o, &w, hash);
}
