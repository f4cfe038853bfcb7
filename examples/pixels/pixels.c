/* An array of structures all of whose fields are used: a contrast curve for each channel. Four floats fill an SSE
 * register, so the array is as good as it gets. SPDX-License-Identifier: MIT */
#include "../common.h"

struct pixel {
    float r, g, b, a;
};

/* Strength of the curve in each channel; between 0 and 1, so that a channel stays within [0, 1] and off zero. */
static const struct pixel strength = {0.75f, 0.5f, 0.25f, 0.875f};

static inline float bend(float c, float k)
{
    const float steep = c * (1.0f - c);
    return c + k * steep * ((0.5f - c) * (1.5f - steep) + 0.0625f * steep) / (1.0f + c * c);
}

static inline float curve(float c, float k)
{
    return bend(bend(bend(c, k), 0.5f * k), 0.25f * k);
}

__attribute__((noinline)) void grade(struct pixel *image, long n, long sweeps)
{
    for (long s = 0; s < sweeps; s++, keep_sweeps_apart())
        for (long i = 0; i < n; i++) {
            image[i].r = curve(image[i].r, strength.r);
            image[i].g = curve(image[i].g, strength.g);
            image[i].b = curve(image[i].b, strength.b);
            image[i].a = curve(image[i].a, strength.a);
        }
}

int main(int argc, char **argv)
{
    const struct options o = read_options(argc, argv, 3000000, 100, 100000, 400000000);
    struct pixel *image = checked(malloc((size_t)o.size * sizeof *image));
    struct stopwatch w = new_stopwatch(&o);
    struct checksum hash = {0, 0.0};
    uint64_t seed = 1;
    for (long i = 0; i < o.size; i++) {
        image[i].r = (float)next_random(&seed);
        image[i].g = (float)next_random(&seed);
        image[i].b = (float)next_random(&seed);
        image[i].a = (float)next_random(&seed);
    }
    for (long step = 0; step < o.steps; step++) {
        start(&w);
        grade(image, o.size, o.sweeps);
        stop(&w);
    }
    for (long i = 0; i < o.size; i++)
        hash = mix(mix(mix(mix(hash, image[i].r), image[i].g), image[i].b), image[i].a);
    finish(&o, &w, hash);
    free(image);
}
