/* European options by Black and Scholes, an array for each number. SPDX-License-Identifier: MIT */
float normal(float x)
{
    const float k = 1.0f / (1.0f + 0.2316419f * fabs(x));
    const float poly = k * (0.31938153f + k * (-0.356563782f + k * (1.781477937f + k * (-1.821255978f + k * 1.330274429f))));
    const float tail = 0.39894228f * exp(-0.5f * x * x) * poly;
    return x > 0 ? 1.0f - tail : tail;
}

__kernel void price(__global const float *spot, __global const float *strike, __global const float *years,
    __global const float *rate, __global const float *volatility, __global float *call, __global float *put)
{
    const size_t i = get_global_id(0);
    const float s = spot[i], k = strike[i], t = years[i], r = rate[i], v = volatility[i];
    const float d1 = (log(s / k) + (r + 0.5f * v * v) * t) / (v * sqrt(t)), d2 = d1 - v * sqrt(t);
    const float discounted = k * exp(-r * t);
    call[i] = s * normal(d1) - discounted * normal(d2);
    put[i] = discounted * normal(-d2) - s * normal(-d1);
}
