/* European options by Black and Scholes, in tiles. SPDX-License-Identifier: MIT */
enum { TILE = 64 };

typedef struct {
    float spot[TILE], strike[TILE], years[TILE], rate[TILE], volatility[TILE];
    float call[TILE], put[TILE];
} options64;

float normal(float x)
{
    const float k = 1.0f / (1.0f + 0.2316419f * fabs(x));
    const float poly = k * (0.31938153f + k * (-0.356563782f + k * (1.781477937f + k * (-1.821255978f + k * 1.330274429f))));
    const float tail = 0.39894228f * exp(-0.5f * x * x) * poly;
    return x > 0 ? 1.0f - tail : tail;
}

__kernel void price(__global options64 *options)
{
    const size_t i = get_global_id(0), j = i % TILE;
    __global options64 *one = &options[i / TILE];
    const float s = one->spot[j], k = one->strike[j], t = one->years[j], r = one->rate[j], v = one->volatility[j];
    const float d1 = (log(s / k) + (r + 0.5f * v * v) * t) / (v * sqrt(t)), d2 = d1 - v * sqrt(t);
    const float discounted = k * exp(-r * t);
    one->call[j] = s * normal(d1) - discounted * normal(d2);
    one->put[j] = discounted * normal(-d2) - s * normal(-d1);
}
