/* lattice.c with an array over the sites for each real number. SPDX-License-Identifier: MIT */
#include "../common.h"

struct matrices {
    double *re[3][3], *im[3][3];
};

struct vectors {
    double *re[3], *im[3];
};

/* out += U * in on the listed sites: all those of one parity. */
__attribute__((noinline)) void multiply(const struct vectors *out, const struct matrices *U, const struct vectors *in,
                                        const int *sites, long n, long sweeps)
{
    for (long s = 0; s < sweeps; s++, keep_sweeps_apart())
        for (long i = 0; i < n; i++) {
            const int site = sites[i];
            for (int row = 0; row < 3; row++) {
                double re = out->re[row][site], im = out->im[row][site];
                for (int column = 0; column < 3; column++) {
                    const double u_re = U->re[row][column][site], u_im = U->im[row][column][site];
                    const double v_re = in->re[column][site], v_im = in->im[column][site];
                    re += u_re * v_re - u_im * v_im;
                    im += u_re * v_im + u_im * v_re;
                }
                out->re[row][site] = re;
                out->im[row][site] = im;
            }
        }
}

static void allocate(struct matrices *U, struct vectors *in, struct vectors *out, long n)
{
    /* One block for each: arrays of equal size that are allocated one by one start at the same offset of a page. */
    double *u = aligned((size_t)n * 18, sizeof *u), *v = aligned((size_t)n * 12, sizeof *v);
    for (int row = 0; row < 3; row++) {
        for (int column = 0; column < 3; column++) {
            U->re[row][column] = u + (6 * row + 2 * column) * n;
            U->im[row][column] = u + (6 * row + 2 * column + 1) * n;
        }
        in->re[row] = v + 2 * row * n;
        in->im[row] = v + (2 * row + 1) * n;
        out->re[row] = v + (6 + 2 * row) * n;
        out->im[row] = v + (7 + 2 * row) * n;
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
                U->re[row][column][site] = next_random(&seed) - 0.5;
                U->im[row][column][site] = next_random(&seed) - 0.5;
            }
            in->re[row][site] = next_random(&seed) - 0.5;
            in->im[row][site] = next_random(&seed) - 0.5;
            out->re[row][site] = 0.0;
            out->im[row][site] = 0.0;
        }
}

static struct checksum checksum_of(const struct vectors *out, long n)
{
    struct checksum hash = {0, 0.0};
    for (long site = 0; site < n; site++)
        for (int row = 0; row < 3; row++)
            hash = mix(mix(hash, out->re[row][site]), out->im[row][site]);
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
