/* What the versions of imaging share: seven sections over the voxels of a cube, each with six numbers: edges of the picture,
 * smoothing that stops at them (after Perona and Malik, 1990), and the outline of what is bright (after Chan and Vese, 2001).
 * A version defines before it: the type `voxels`, allocate, and where the numbers of voxel i are: RAW(v, i), SMOOTH, EDGE,
 * NEXT, OUTLINE, SPEED. SPDX-License-Identifier: MIT */
enum { SMOOTHINGS = 3 };

struct means {
    double inside, outside;
};

#define SECTION __attribute__((noinline)) void
#define VOXELS_IN_TURN(n)                   \
    for (long z = 1; z < (n)-1; z++)        \
        for (long y = 1; y < (n)-1; y++)    \
            for (long x = 1, i = (z * (n) + y) * (n) + 1; x < (n)-1; x++, i++)
/* A version may write the loop in another way where the order of the voxels does not matter. */
#ifndef INNER_VOXELS
#define INNER_VOXELS(n) VOXELS_IN_TURN(n)
#endif

/* Near 0 where the picture changes, 1 where it does not. */
SECTION edges(voxels v, long n)
{
    INNER_VOXELS(n)
    {
        const float dx = SMOOTH(v, i + 1) - SMOOTH(v, i - 1), dy = SMOOTH(v, i + n) - SMOOTH(v, i - n);
        const float dz = SMOOTH(v, i + n * n) - SMOOTH(v, i - n * n);
        EDGE(v, i) = 1.0f / (1.0f + 8.0f * (dx * dx + dy * dy + dz * dz));
    }
}

SECTION diffuse(voxels v, long n)
{
    INNER_VOXELS(n)
    {
        const float e = EDGE(v, i - 1), w = EDGE(v, i + 1), s = EDGE(v, i - n), t = EDGE(v, i + n);
        const float a = EDGE(v, i - n * n), b = EDGE(v, i + n * n);
        const float around = e * SMOOTH(v, i - 1) + w * SMOOTH(v, i + 1) + s * SMOOTH(v, i - n) + t * SMOOTH(v, i + n) +
                             a * SMOOTH(v, i - n * n) + b * SMOOTH(v, i + n * n);
        NEXT(v, i) = (around + 0.5f * RAW(v, i)) / (e + w + s + t + a + b + 0.5f);
    }
}

SECTION accept(voxels v, long n)
{
    INNER_VOXELS(n)
    SMOOTH(v, i) += 0.75f * (NEXT(v, i) - SMOOTH(v, i));
}

/* Mean brightness within and without the outline. */
SECTION measure(voxels v, long n, struct means *m)
{
    double sum[2] = {0.0, 0.0}, weight[2] = {1e-9, 1e-9};
    VOXELS_IN_TURN(n)
    {
        const float p = OUTLINE(v, i), share = p < 0.0f ? 0.0f : p > 1.0f ? 1.0f : p, u = SMOOTH(v, i);
        sum[0] += (double)(share * u);
        weight[0] += (double)share;
        sum[1] += (double)((1.0f - share) * u);
        weight[1] += (double)(1.0f - share);
    }
    m->inside = sum[0] / weight[0];
    m->outside = sum[1] / weight[1];
}

SECTION bend(voxels v, long n)
{
    INNER_VOXELS(n)
    SPEED(v, i) = OUTLINE(v, i - 1) + OUTLINE(v, i + 1) + OUTLINE(v, i - n) + OUTLINE(v, i + n) + OUTLINE(v, i - n * n) +
                  OUTLINE(v, i + n * n) - 6.0f * OUTLINE(v, i);
}

SECTION evolve(voxels v, long n, const struct means *m)
{
    const float inside = (float)m->inside, outside = (float)m->outside;
    INNER_VOXELS(n)
    {
        const float a = SMOOTH(v, i) - inside, b = SMOOTH(v, i) - outside;
        OUTLINE(v, i) += 0.125f * SPEED(v, i) + 0.25f * (b * b - a * a);
    }
}

/* A ramp is taken off the picture, as a scanner's field is never even. */
SECTION even_out(voxels v, long n, float by)
{
    INNER_VOXELS(n)
    RAW(v, i) -= by * (RAW(v, i) - SMOOTH(v, i));
}

static void step_all(voxels v, long n, struct means *m)
{
    for (int k = 0; k < SMOOTHINGS; k++) {
        edges(v, n);
        diffuse(v, n);
        accept(v, n);
    }
    measure(v, n, m);
    bend(v, n);
    evolve(v, n, m);
    even_out(v, n, 0.0625f);
}

int main(int argc, char **argv)
{
    const struct options o = read_options(argc, argv, 128, 12, 8, 1200);
    const long n = o.size, all = n * n * n;
    struct stopwatch w = new_stopwatch(&o);
    struct checksum hash = {0, 0.0};
    struct means m = {0.0, 0.0};
    voxels v = allocate(all);
    uint64_t seed = 1;
    for (long i = 0; i < all; i++) {
        const double x = (double)(i % n) / (double)n - 0.5, y = (double)(i / n % n) / (double)n - 0.5;
        const double z = (double)(i / n / n) / (double)n - 0.5, inside = x * x + y * y + z * z < 0.09 ? 0.5 : 0.0;
        RAW(v, i) = SMOOTH(v, i) = (float)(inside + 0.25 * next_random(&seed));
        EDGE(v, i) = NEXT(v, i) = SPEED(v, i) = 0.0f;
        OUTLINE(v, i) = (float)(0.5 + x);
    }
    for (long step = 0; step < o.steps; step++) {
        start(&w);
        for (long s = 0; s < o.sweeps; s++)
            step_all(v, n, &m);
        stop(&w);
    }
    for (long i = 0; i < all; i++)
        hash = mix(mix(hash, (double)SMOOTH(v, i)), (double)OUTLINE(v, i));
    finish(&o, &w, hash);
}
