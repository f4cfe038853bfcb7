/* What the versions of kmeans32 share: points of 32 features, in two sections. `spread` goes over all points feature by
 * feature and narrows the range that counts (sigma clipping); `assign` takes points at random and moves their nearest centres
 * (mini-batches: Sculley, 2010). A version defines before it: the type `points`, allocate, put, and FEATURE(p, i, f), feature f
 * of point i; with OWN_LAYOUT a type `searched` with FOUND(p, i, f) for the second section, and `turned`, which makes one of
 * the points. SPDX-License-Identifier: MIT */
enum { FEATURES = 32, CENTRES = 8, CLIPPINGS = 4, BATCHES = 32 };

struct range {
    float low[FEATURES], high[FEATURES], scale[FEATURES];
};

#ifndef OWN_LAYOUT
typedef points searched;
#define FOUND FEATURE

static searched turned(points p, long n)
{
    (void)n;
    return p;
}
#endif

__attribute__((noinline)) void spread(points p, long n, struct range *r)
{
    for (int f = 0; f < FEATURES; f++) {
        const float low = r->low[f], high = r->high[f];
        float sum = 0.0f, squares = 0.0f, count = 1e-6f;
        for (long i = 0; i < n; i++) {
            const float x = FEATURE(p, i, f), counts = x >= low && x <= high ? 1.0f : 0.0f;
            sum += counts * x;
            squares += counts * x * x;
            count += counts;
        }
        const float mean = sum / count, variance = squares / count - mean * mean;
        r->low[f] = mean - 9.0f * variance;
        r->high[f] = mean + 9.0f * variance;
        r->scale[f] = 1.0f / (variance + 0.01f);
    }
}

__attribute__((noinline)) void assign(searched p, const int *batch, long members, const struct range *r,
                                      float centre[CENTRES][FEATURES], float *weight)
{
    for (long k = 0; k < members; k++) {
        const long i = batch[k];
        float nearest = 3e38f;
        int best = 0;
        for (int c = 0; c < CENTRES; c++) {
            float d = 0.0f;
            for (int f = 0; f < FEATURES; f++) {
                const float t = FOUND(p, i, f) - centre[c][f];
                d += t * t * r->scale[f];
            }
            best = d < nearest ? c : best;
            nearest = d < nearest ? d : nearest;
        }
        weight[best] += 1.0f;
        for (int f = 0; f < FEATURES; f++)
            centre[best][f] += (FOUND(p, i, f) - centre[best][f]) / weight[best];
    }
}

int main(int argc, char **argv)
{
    const struct options o = read_options(argc, argv, 1L << 20, 3, 500, 20000000);
    const long n = o.size, members = n / 16 + 1;
    struct stopwatch w = new_stopwatch(&o);
    struct checksum hash = {0, 0.0};
    points p = allocate(n);
    int *batch = checked(malloc((size_t)members * sizeof *batch));
    static struct range r;
    static float centre[CENTRES][FEATURES], weight[CENTRES];
    uint64_t seed = 1;
    for (long job = 0; job < o.steps; job++) {
        for (long i = 0; i < n; i++)
            for (int f = 0; f < FEATURES; f++)
                put(p, i, f, (float)next_random(&seed));
        for (int f = 0; f < FEATURES; f++) {
            r.low[f] = -1e9f;
            r.high[f] = 1e9f;
            for (int c = 0; c < CENTRES; c++)
                centre[c][f] = (float)next_random(&seed);
        }
        for (int c = 0; c < CENTRES; c++)
            weight[c] = 1.0f;
        for (long k = 0; k < members; k++)
            batch[k] = (int)(next_random(&seed) * (double)n);
        start(&w);
        for (long s = 0; s < o.sweeps; s++) {
            for (int k = 0; k < CLIPPINGS; k++)
                spread(p, n, &r);
            searched q = turned(p, n);
            for (int k = 0; k < BATCHES; k++)
                assign(q, batch, members, &r, centre, weight);
        }
        stop(&w);
        for (int c = 0; c < CENTRES; c++)
            for (int f = 0; f < FEATURES; f++)
                hash = mix(hash, (double)centre[c][f]);
    }
    finish(&o, &w, hash);
}
