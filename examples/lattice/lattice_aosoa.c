/* lattice.c in blocks of four sites of the same parity: one AVX2 register of doubles for each real number.
 * SPDX-License-Identifier: MIT */
#include "../common.h"

enum { LANES = 4 };

struct complex_lanes {
    double re[LANES], im[LANES];
};

struct matrix {
    struct complex_lanes at[3][3];
};

struct vector {
    struct complex_lanes at[3];
};

/* out += U * in on so many blocks: all those of one parity, of which the last may be partly empty. */
__attribute__((noinline)) void multiply(struct vector *out, const struct matrix *U, const struct vector *in, long blocks,
                                        long sweeps)
{
    for (long s = 0; s < sweeps; s++, keep_sweeps_apart())
        for (long b = 0; b < blocks; b++)
            for (int row = 0; row < 3; row++) {
                struct complex_lanes *o = &out[b].at[row];
                for (int l = 0; l < LANES; l++) {
                    double re = o->re[l], im = o->im[l];
                    for (int column = 0; column < 3; column++) {
                        const struct complex_lanes *u = &U[b].at[row][column], *v = &in[b].at[column];
                        re += u->re[l] * v->re[l] - u->im[l] * v->im[l];
                        im += u->re[l] * v->im[l] + u->im[l] * v->re[l];
                    }
                    o->re[l] = re;
                    o->im[l] = im;
                }
            }
}

/* Where a site of the lattice is stored: its rank among those of its parity, the odd ones in the second half, which begins
 * with a block. */
static long place(long site, long l)
{
    const long odd = (site % l + site / l % l + site / l / l % l + site / l / l / l) % 2;
    return odd * ((l * l * l * l / 2 + LANES - 1) / LANES * LANES) + site / 2;
}

static void initialise(struct matrix *U, struct vector *in, long n, long l)
{
    uint64_t seed = 1;
    for (long i = 0; i < n; i++) {
        const long b = place(i, l) / LANES, lane = place(i, l) % LANES;
        for (int row = 0; row < 3; row++) {
            for (int column = 0; column < 3; column++) {
                U[b].at[row][column].re[lane] = next_random(&seed) - 0.5;
                U[b].at[row][column].im[lane] = next_random(&seed) - 0.5;
            }
            in[b].at[row].re[lane] = next_random(&seed) - 0.5;
            in[b].at[row].im[lane] = next_random(&seed) - 0.5;
        }
    }
}

static struct checksum checksum_of(const struct vector *out, long n, long l)
{
    struct checksum hash = {0, 0.0};
    for (long i = 0; i < n; i++) {
        const long b = place(i, l) / LANES, lane = place(i, l) % LANES;
        for (int row = 0; row < 3; row++)
            hash = mix(mix(hash, out[b].at[row].re[lane]), out[b].at[row].im[lane]);
    }
    return hash;
}

int main(int argc, char **argv)
{
    const struct options o = read_options(argc, argv, 20, 800, 32, 100);
    const int l = (int)o.size;
    const long n = (long)l * l * l * l, blocks = (n / 2 + LANES - 1) / LANES;
    struct matrix *U = aligned(2 * (size_t)blocks, sizeof *U);
    struct vector *in = aligned(2 * (size_t)blocks, sizeof *in), *out = aligned(2 * (size_t)blocks, sizeof *out);
    struct stopwatch w = new_stopwatch(&o);
    if (l % 2 != 0)
        fail(argv[0], "SIZE is even");
    memset(U, 0, 2 * (size_t)blocks * sizeof *U);
    memset(in, 0, 2 * (size_t)blocks * sizeof *in);
    memset(out, 0, 2 * (size_t)blocks * sizeof *out);
    initialise(U, in, n, l);
    for (long step = 0; step < o.steps; step++) {
        const long first = step % 2 * blocks;
        start(&w);
        multiply(out + first, U + first, in + first, blocks, o.sweeps);
        stop(&w);
    }
    finish(&o, &w, checksum_of(out, n, l));
}
