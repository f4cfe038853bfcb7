/* What the versions of kmeans share: points about some centres, and the steps of Lloyd's method. A version defines before
 * it: the type `points`, allocate, put_coordinate, coordinate, label, distance, and the hotspot `assign`.
 * SPDX-License-Identifier: MIT */

static points scattered(long n)
{
    points p = allocate(n);
    uint64_t seed = 1;
    for (long i = 0; i < n; i++) {
        const int cluster = (int)(CENTRES * next_random(&seed));
        for (int k = 0; k < DIMS; k++) {
            const double centre = (double)((cluster * (2 * k + 3)) % CENTRES) / CENTRES;
            put_coordinate(p, i, k, (float)(centre + 0.5 * (next_random(&seed) - 0.5)));
        }
    }
    return p;
}

/* Every centre moves to the mean of its points. */
static void move(float centre[][DIMS], points p, long n)
{
    double sum[CENTRES][DIMS] = {{0.0}};
    long members[CENTRES] = {0};
    for (long i = 0; i < n; i++) {
        members[label(p, i)]++;
        for (int k = 0; k < DIMS; k++)
            sum[label(p, i)][k] += (double)coordinate(p, i, k);
    }
    for (int c = 0; c < CENTRES; c++)
        for (int k = 0; k < DIMS && members[c] > 0; k++)
            centre[c][k] = (float)(sum[c][k] / (double)members[c]);
}

int main(int argc, char **argv)
{
    const struct options o = read_options(argc, argv, 100000, 60, 1000, 50000000);
    points p = scattered(o.size);
    float centre[CENTRES][DIMS];
    struct stopwatch w = new_stopwatch(&o);
    struct checksum hash = {0, 0.0};
    for (int c = 0; c < CENTRES; c++)
        for (int k = 0; k < DIMS; k++)
            centre[c][k] = coordinate(p, o.size / CENTRES * c, k);
    for (long step = 0; step < o.steps; step++) {
        start(&w);
        assign(p, o.size, o.sweeps, centre, CENTRES);
        stop(&w);
        move(centre, p, o.size);
    }
    for (long i = 0; i < o.size; i++)
        hash = mix(mix(hash, label(p, i)), (double)distance(p, i));
    finish(&o, &w, hash);
}
