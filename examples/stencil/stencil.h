/* What the versions of stencil share. A version defines before it: the type `grid`, allocate, put, temperature, and the
 * hotspot `diffuse`, which reads the temperatures of one parity and writes those of the other.
 * SPDX-License-Identifier: MIT */
int main(int argc, char **argv)
{
    const struct options o = read_options(argc, argv, 600, 200, 720, 20000);
    const long n = o.size;
    struct stopwatch w = new_stopwatch(&o);
    struct checksum hash = {0, 0.0};
    grid g = allocate(n);
    uint64_t seed = 1;
    for (long i = 0; i < n; i++)
        for (long j = 0; j < n; j++) {
            const double hot = next_random(&seed);
            put(g, n, i, j, hot, 0.125 + 0.125 * next_random(&seed));
        }
    for (long step = 0; step < o.steps; step++) {
        start(&w);
        diffuse(g, n, o.sweeps, (int)(step % 2));
        stop(&w);
    }
    for (long i = 0; i < n; i++)
        for (long j = 0; j < n; j++)
            hash = mix(hash, temperature(g, n, i, j, (int)(o.steps % 2)));
    finish(&o, &w, hash);
}
