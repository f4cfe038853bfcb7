/* European options by Black and Scholes, what is asked apart from the answers. SPDX-License-Identifier: MIT */
typedef struct {
    float spot, strike, years, rate, volatility;
} option;

typedef struct {
    float call, put;
} answer;

float normal(float x)
{
    const float k = 1.0f / (1.0f + 0.2316419f * fabs(x));
    const float poly = k * (0.31938153f + k * (-0.356563782f + k * (1.781477937f + k * (-1.821255978f + k * 1.330274429f))));
    const float tail = 0.39894228f * exp(-0.5f * x * x) * poly;
    return x > 0 ? 1.0f - tail : tail;
}

__kernel void price(__global const option *options, __global answer *answers)
{
    const size_t i = get_global_id(0);
    const float s = options[i].spot, k = options[i].strike, t = options[i].years;
    const float r = options[i].rate, v = options[i].volatility;
    const float d1 = (log(s / k) + (r + 0.5f * v * v) * t) / (v * sqrt(t)), d2 = d1 - v * sqrt(t);
    const float discounted = k * exp(-r * t);
    answers[i].call = s * normal(d1) - discounted * normal(d2);
    answers[i].put = discounted * normal(-d2) - s * normal(-d1);
}
