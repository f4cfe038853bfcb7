/* lattice.c with all even sites stored before all odd ones: a call walks through contiguous memory.
 * SPDX-License-Identifier: MIT */
#include "../common.h"

struct complex {
    double re, im;
};

struct matrix {
    struct complex at[3][3];
};

struct vector {
    struct complex at[3];
};

/* out += U * in on the listed sites: all those of one parity. */
__attribute__((noinline)) void multiply(struct vector *out, const struct matrix *U, const struct vector *in,
                                        const int *sites, long n, long sweeps)
{
    for (long s = 0; s < sweeps; s++, keep_sweeps_apart())
        for (long i = 0; i < n; i++) {
            const int site = sites[i];
            for (int row = 0; row < 3; row++) {
                double re = out[site].at[row].re, im = out[site].at[row].im;
                for (int column = 0; column < 3; column++) {
                    const struct complex u = U[site].at[row][column], v = in[site].at[column];
                    re += u.re * v.re - u.im * v.im;
                    im += u.re * v.im + u.im * v.re;
                }
                out[site].at[row].re = re;
                out[site].at[row].im = im;
            }
        }
}

/* Where a site of the lattice is stored: its rank among those of its parity, the odd ones in the second half. Two
 * neighbours along x differ in parity, so the rank is half the site's number. */
static long place(long site, long l)
{
    const long odd = (site % l + site / l % l + site / l / l % l + site / l / l / l) % 2;
    return odd * (l * l * l * l / 2) + site / 2;
}

/* The places of the sites with (x + y + z + t) % 2 == parity. */
static int *sites_of(int parity, int l)
{
    const int n = l * l * l * l;
    int *sites = checked(malloc((size_t)n / 2 * sizeof *sites));
    for (int site = 0, i = 0; site < n; site++)
        if ((site % l + site / l % l + site / l / l % l + site / l / l / l) % 2 == parity)
            sites[i++] = (int)place(site, l);
    return sites;
}

static void initialise(struct matrix *U, struct vector *in, struct vector *out, long n, long l)
{
    uint64_t seed = 1;
    for (long i = 0; i < n; i++) {
        const long site = place(i, l);
        for (int row = 0; row < 3; row++) {
            for (int column = 0; column < 3; column++) {
                U[site].at[row][column].re = next_random(&seed) - 0.5;
                U[site].at[row][column].im = next_random(&seed) - 0.5;
            }
            in[site].at[row].re = next_random(&seed) - 0.5;
            in[site].at[row].im = next_random(&seed) - 0.5;
            out[site].at[row].re = 0.0;
            out[site].at[row].im = 0.0;
        }
    }
}

static struct checksum checksum_of(const struct vector *out, long n, long l)
{
    struct checksum hash = {0, 0.0};
    for (long i = 0; i < n; i++) {
        const long site = place(i, l);
        for (int row = 0; row < 3; row++)
            hash = mix(mix(hash, out[site].at[row].re), out[site].at[row].im);
    }
    return hash;
}

int main(int argc, char **argv)
{
    const struct options o = read_options(argc, argv, 20, 800, 32, 100);
    const int l = (int)o.size;
    const long n = (long)l * l * l * l;
    struct matrix *U = checked(malloc((size_t)n * sizeof *U));
    struct vector *in = checked(malloc((size_t)n * sizeof *in));
    struct vector *out = checked(malloc((size_t)n * sizeof *out));
    int *sites[2] = {sites_of(0, l), sites_of(1, l)};
    struct stopwatch w = new_stopwatch(&o);
    if (l % 2 != 0)
        fail(argv[0], "SIZE is even");
    initialise(U, in, out, n, l);
    for (long step = 0; step < o.steps; step++) {
        start(&w);
        multiply(out, U, in, sites[step % 2], n / 2, o.sweeps);
        stop(&w);
    }
    finish(&o, &w, checksum_of(out, n, l));
}
