/* What the versions of lbm share: a lattice Boltzmann step in two dimensions with nine directions (Qian, d'Humieres and
 * Lallemand, 1992), pulled from the neighbours and relaxed to the local equilibrium (Bhatnagar, Gross and Krook, 1954).
 * A version defines before it where direction q of the cell in column x of row y of n stands, `at(n, x, y, q)`, and, if
 * OWN_RELAX is defined, after it the hotspot. SPDX-License-Identifier: MIT */
struct cell {
    double rest, east, north, west, south, ne, nw, sw, se;
};

static inline struct cell relaxed(struct cell f, double rate)
{
    const double density = f.rest + f.east + f.north + f.west + f.south + f.ne + f.nw + f.sw + f.se;
    const double u = (f.east - f.west + f.ne - f.nw - f.sw + f.se) / density;
    const double v = (f.north - f.south + f.ne + f.nw - f.sw - f.se) / density;
    const double still = 1.0 - 1.5 * (u * u + v * v), up = u + v, down = v - u;
    const double straight = density / 9.0, diagonal = density / 36.0;
    return (struct cell){
        .rest = f.rest + rate * (4.0 * straight * still - f.rest),
        .east = f.east + rate * (straight * (still + 3.0 * u + 4.5 * u * u) - f.east),
        .north = f.north + rate * (straight * (still + 3.0 * v + 4.5 * v * v) - f.north),
        .west = f.west + rate * (straight * (still - 3.0 * u + 4.5 * u * u) - f.west),
        .south = f.south + rate * (straight * (still - 3.0 * v + 4.5 * v * v) - f.south),
        .ne = f.ne + rate * (diagonal * (still + 3.0 * up + 4.5 * up * up) - f.ne),
        .nw = f.nw + rate * (diagonal * (still + 3.0 * down + 4.5 * down * down) - f.nw),
        .sw = f.sw + rate * (diagonal * (still - 3.0 * up + 4.5 * up * up) - f.sw),
        .se = f.se + rate * (diagonal * (still - 3.0 * down + 4.5 * down * down) - f.se),
    };
}

__attribute__((noinline)) void relax(double *restrict next, const double *restrict now, long n, double rate, long sweeps);

#ifndef OWN_RELAX
void relax(double *restrict next, const double *restrict now, long n, double rate, long sweeps)
{
    for (long s = 0; s < sweeps; s++, keep_sweeps_apart())
        for (long y = 1; y < n - 1; y++)
            for (long x = 1; x < n - 1; x++) {
                const struct cell f = {
                    .rest = now[at(n, x, y, 0)],
                    .east = now[at(n, x - 1, y, 1)],
                    .north = now[at(n, x, y - 1, 2)],
                    .west = now[at(n, x + 1, y, 3)],
                    .south = now[at(n, x, y + 1, 4)],
                    .ne = now[at(n, x - 1, y - 1, 5)],
                    .nw = now[at(n, x + 1, y - 1, 6)],
                    .sw = now[at(n, x + 1, y + 1, 7)],
                    .se = now[at(n, x - 1, y + 1, 8)],
                };
                const struct cell g = relaxed(f, rate);
                next[at(n, x, y, 0)] = g.rest;
                next[at(n, x, y, 1)] = g.east;
                next[at(n, x, y, 2)] = g.north;
                next[at(n, x, y, 3)] = g.west;
                next[at(n, x, y, 4)] = g.south;
                next[at(n, x, y, 5)] = g.ne;
                next[at(n, x, y, 6)] = g.nw;
                next[at(n, x, y, 7)] = g.sw;
                next[at(n, x, y, 8)] = g.se;
            }
}
#endif

int main(int argc, char **argv)
{
    const struct options o = read_options(argc, argv, 600, 200, 720, 20000);
    const long n = o.size;
    const size_t room = (size_t)((n * n + 7) / 8 * 8) * 9; /* whole blocks of eight cells */
    struct stopwatch w = new_stopwatch(&o);
    struct checksum hash = {0, 0.0};
    double *f[2];
    uint64_t seed = 1;
    for (int p = 0; p < 2; p++)
        f[p] = checked(calloc(room, sizeof(double)));
    for (long y = 0; y < n; y++)
        for (long x = 0; x < n; x++)
            for (int q = 0; q < 9; q++) {
                const double weight = (q == 0 ? 4.0 : q < 5 ? 1.0 : 0.25) / 9.0;
                f[0][at(n, x, y, q)] = f[1][at(n, x, y, q)] = weight + 0.01 * next_random(&seed);
            }
    for (long step = 0; step < o.steps; step++) {
        start(&w);
        relax(f[1 - step % 2], f[step % 2], n, 1.2, o.sweeps);
        stop(&w);
    }
    for (long y = 0; y < n; y++)
        for (long x = 0; x < n; x++)
            for (int q = 0; q < 9; q++)
                hash = mix(hash, f[o.steps % 2][at(n, x, y, q)]);
    finish(&o, &w, hash);
    for (int p = 0; p < 2; p++)
        free(f[p]);
}
