/* pixels.c in blocks of eight: one AVX2 register of floats for each channel. SPDX-License-Identifier: MIT */
#include "../common.h"

#define LANES 8

struct block {
    float r[LANES], g[LANES], b[LANES], a[LANES];
};

static const struct {
    float r, g, b, a;
} strength = {0.75f, 0.5f, 0.25f, 0.875f};

static inline float bend(float c, float k)
{
    const float steep = c * (1.0f - c);
    return c + k * steep * ((0.5f - c) * (1.5f - steep) + 0.0625f * steep) / (1.0f + c * c);
}

static inline float curve(float c, float k)
{
    return bend(bend(bend(c, k), 0.5f * k), 0.25f * k);
}

/* The last block may be partly empty; its unused lanes are computed and never looked at. */
__attribute__((noinline)) void grade(struct block *p, long blocks, long sweeps)
{
    for (long s = 0; s < sweeps; s++, keep_sweeps_apart())
        for (long i = 0; i < blocks; i++) {
            for (int l = 0; l < LANES; l++)
                p[i].r[l] = curve(p[i].r[l], strength.r);
            for (int l = 0; l < LANES; l++)
                p[i].g[l] = curve(p[i].g[l], strength.g);
            for (int l = 0; l < LANES; l++)
                p[i].b[l] = curve(p[i].b[l], strength.b);
            for (int l = 0; l < LANES; l++)
                p[i].a[l] = curve(p[i].a[l], strength.a);
        }
}

int main(int argc, char **argv)
{
    const struct options o = read_options(argc, argv, 3000000, 100, 100000, 400000000);
    const long blocks = (o.size + LANES - 1) / LANES;
    struct block *p = aligned((size_t)blocks, sizeof *p);
    struct stopwatch w = new_stopwatch(&o);
    struct checksum hash = {0, 0.0};
    uint64_t seed = 1;
    memset(p, 0, (size_t)blocks * sizeof *p);
    for (long i = 0; i < o.size; i++) {
        p[i / LANES].r[i % LANES] = (float)next_random(&seed);
        p[i / LANES].g[i % LANES] = (float)next_random(&seed);
        p[i / LANES].b[i % LANES] = (float)next_random(&seed);
        p[i / LANES].a[i % LANES] = (float)next_random(&seed);
    }
    for (long step = 0; step < o.steps; step++) {
        start(&w);
        grade(p, blocks, o.sweeps);
        stop(&w);
    }
    for (long i = 0; i < o.size; i++) {
        const struct block *b = &p[i / LANES];
        const long l = i % LANES;
        hash = mix(mix(mix(mix(hash, b->r[l]), b->g[l]), b->b[l]), b->a[l]);
    }
    finish(&o, &w, hash);
    free(p);
}
