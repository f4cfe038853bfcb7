/* pixels.c with two channels in a plane. SPDX-License-Identifier: MIT */
#include "../common.h"

struct rg {
    float r, g;
};

struct ba {
    float b, a;
};

struct image {
    struct rg *rg;
    struct ba *ba;
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
    struct rg *rg = image->rg;
    struct ba *ba = image->ba;
    for (long s = 0; s < sweeps; s++, keep_sweeps_apart())
        for (long i = 0; i < n; i++) {
            rg[i].r = curve(rg[i].r, strength.r);
            rg[i].g = curve(rg[i].g, strength.g);
            ba[i].b = curve(ba[i].b, strength.b);
            ba[i].a = curve(ba[i].a, strength.a);
        }
}

int main(int argc, char **argv)
{
    const struct options o = read_options(argc, argv, 3000000, 100, 100000, 400000000);
    const size_t n = (size_t)o.size;
    struct image p = {aligned(n, sizeof(struct rg)), aligned(n, sizeof(struct ba))};
    struct stopwatch w = new_stopwatch(&o);
    struct checksum hash = {0, 0.0};
    uint64_t seed = 1;
    for (long i = 0; i < o.size; i++) {
        p.rg[i].r = (float)next_random(&seed);
        p.rg[i].g = (float)next_random(&seed);
        p.ba[i].b = (float)next_random(&seed);
        p.ba[i].a = (float)next_random(&seed);
    }
    for (long step = 0; step < o.steps; step++) {
        start(&w);
        grade(&p, o.size, o.sweeps);
        stop(&w);
    }
    for (long i = 0; i < o.size; i++)
        hash = mix(mix(mix(mix(hash, p.rg[i].r), p.rg[i].g), p.ba[i].b), p.ba[i].a);
    finish(&o, &w, hash);
}
