/* lattice.c with an array over the sites for each complex number, declared `restrict`. SPDX-License-Identifier: MIT */
#include "../common.h"

struct complex {
    double re, im;
};

struct matrices {
    struct complex *at[3][3];
};

struct vectors {
    struct complex *at[3];
};

/* sum + u * v, the products added one after the other */
static inline struct complex plus(struct complex sum, struct complex u0, struct complex v0, struct complex u1,
                                  struct complex v1, struct complex u2, struct complex v2)
{
    sum.re += u0.re * v0.re - u0.im * v0.im;
    sum.im += u0.re * v0.im + u0.im * v0.re;
    sum.re += u1.re * v1.re - u1.im * v1.im;
    sum.im += u1.re * v1.im + u1.im * v1.re;
    sum.re += u2.re * v2.re - u2.im * v2.im;
    sum.im += u2.re * v2.im + u2.im * v2.re;
    return sum;
}

/* out += U * in on the listed sites: all those of one parity. */
__attribute__((noinline)) void multiply(const struct vectors *out, const struct matrices *U, const struct vectors *in,
                                        const int *sites, long n, long sweeps)
{
    const struct complex *restrict u00 = U->at[0][0], *restrict u01 = U->at[0][1], *restrict u02 = U->at[0][2];
    const struct complex *restrict u10 = U->at[1][0], *restrict u11 = U->at[1][1], *restrict u12 = U->at[1][2];
    const struct complex *restrict u20 = U->at[2][0], *restrict u21 = U->at[2][1], *restrict u22 = U->at[2][2];
    const struct complex *restrict in0 = in->at[0], *restrict in1 = in->at[1], *restrict in2 = in->at[2];
    struct complex *restrict out0 = out->at[0], *restrict out1 = out->at[1], *restrict out2 = out->at[2];

    for (long s = 0; s < sweeps; s++, keep_sweeps_apart())
        for (long i = 0; i < n; i++) {
            const int site = sites[i];
            const struct complex v0 = in0[site], v1 = in1[site], v2 = in2[site];
            out0[site] = plus(out0[site], u00[site], v0, u01[site], v1, u02[site], v2);
            out1[site] = plus(out1[site], u10[site], v0, u11[site], v1, u12[site], v2);
            out2[site] = plus(out2[site], u20[site], v0, u21[site], v1, u22[site], v2);
        }
}

static void allocate(struct matrices *U, struct vectors *in, struct vectors *out, long n)
{
    for (int row = 0; row < 3; row++) {
        for (int column = 0; column < 3; column++)
            U->at[row][column] = aligned((size_t)n, sizeof(struct complex));
        in->at[row] = aligned((size_t)n, sizeof(struct complex));
        out->at[row] = aligned((size_t)n, sizeof(struct complex));
    }
}

/* The sites of an l^4 lattice with (x + y + z + t) % 2 == parity. */
static int *sites_of(int parity, int l)
{
    const int n = l * l * l * l;
    int *sites = checked(malloc((size_t)n / 2 * sizeof *sites));
    for (int site = 0, i = 0; site < n; site++)
        if ((site % l + site / l % l + site / l / l % l + site / l / l / l) % 2 == parity)
            sites[i++] = site;
    return sites;
}

static void initialise(const struct matrices *U, const struct vectors *in, const struct vectors *out, long n)
{
    uint64_t seed = 1;
    for (long site = 0; site < n; site++)
        for (int row = 0; row < 3; row++) {
            for (int column = 0; column < 3; column++) {
                U->at[row][column][site].re = next_random(&seed) - 0.5;
                U->at[row][column][site].im = next_random(&seed) - 0.5;
            }
            in->at[row][site].re = next_random(&seed) - 0.5;
            in->at[row][site].im = next_random(&seed) - 0.5;
            out->at[row][site].re = 0.0;
            out->at[row][site].im = 0.0;
        }
}

static struct checksum checksum_of(const struct vectors *out, long n)
{
    struct checksum hash = {0, 0.0};
    for (long site = 0; site < n; site++)
        for (int row = 0; row < 3; row++)
            hash = mix(mix(hash, out->at[row][site].re), out->at[row][site].im);
    return hash;
}

int main(int argc, char **argv)
{
    const struct options o = read_options(argc, argv, 20, 800, 32, 100);
    const int l = (int)o.size;
    const long n = (long)l * l * l * l;
    struct matrices U;
    struct vectors in, out;
    int *sites[2] = {sites_of(0, l), sites_of(1, l)};
    struct stopwatch w = new_stopwatch(&o);
    if (l % 2 != 0)
        fail(argv[0], "SIZE is even");
    allocate(&U, &in, &out, n);
    initialise(&U, &in, &out, n);
    for (long step = 0; step < o.steps; step++) {
        start(&w);
        multiply(&out, &U, &in, sites[step % 2], n / 2, o.sweeps);
        stop(&w);
    }
    finish(&o, &w, checksum_of(&out, n));
}
