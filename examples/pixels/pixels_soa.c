/* pixels.c with a plane for each channel. SPDX-License-Identifier: MIT */
#include "../common.h"

struct image {
    float *r, *g, *b, *a;
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

__attribute__((noinline)) void grade(const struct image *image, long n, long sweeps)
{
    float *r = image->r, *g = image->g, *b = image->b, *a = image->a;
    for (long s = 0; s < sweeps; s++, keep_sweeps_apart())
        for (long i = 0; i < n; i++) {
            r[i] = curve(r[i], strength.r);
            g[i] = curve(g[i], strength.g);
            b[i] = curve(b[i], strength.b);
            a[i] = curve(a[i], strength.a);
        }
}

int main(int argc, char **argv)
{
    const struct options o = read_options(argc, argv, 3000000, 100, 100000, 400000000);
    const size_t n = (size_t)o.size;
    struct image p = {aligned(n, sizeof(float)), aligned(n, sizeof(float)), aligned(n, sizeof(float)),
                      aligned(n, sizeof(float))};
    struct stopwatch w = new_stopwatch(&o);
    struct checksum hash = {0, 0.0};
    uint64_t seed = 1;
    for (long i = 0; i < o.size; i++) {
        p.r[i] = (float)next_random(&seed);
        p.g[i] = (float)next_random(&seed);
        p.b[i] = (float)next_random(&seed);
        p.a[i] = (float)next_random(&seed);
    }
    for (long step = 0; step < o.steps; step++) {
        start(&w);
        grade(&p, o.size, o.sweeps);
        stop(&w);
    }
    for (long i = 0; i < o.size; i++)
        hash = mix(mix(mix(mix(hash, p.r[i]), p.g[i]), p.b[i]), p.a[i]);
    finish(&o, &w, hash);
}
