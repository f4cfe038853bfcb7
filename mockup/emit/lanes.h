/* Values of LA_LANES consecutive elements side by side, in the vector types of gcc and clang. Defined before: LA_LANES,
 * LA_EACH(x) (x as often, with commas), LA_NUMBERS (0, 1, 2 ...). SPDX-License-Identifier: MIT */
#ifndef LAYOUT_ADVISE_LANES_H
#define LAYOUT_ADVISE_LANES_H
#include "mockup.h"

#pragma GCC diagnostic ignored "-Wpsabi" /* everything is inlined: how vectors are handed over does not matter */

/* la_vT in registers, la_mT in memory, la_mT_u at any address. */
#define LA_VECTOR(name, type)                                                                        \
    typedef type la_v##name __attribute__((vector_size(sizeof(type) * LA_LANES)));                   \
    typedef la_v##name la_m##name __attribute__((may_alias, aligned(sizeof(type) * LA_LANES)));      \
    typedef la_v##name la_m##name##_u __attribute__((may_alias, aligned(1)));                        \
    LA_INLINE la_v##name la_all_##name(type x) { return (la_v##name){LA_EACH(x)}; }
LA_VECTOR(i8, uint8_t)
LA_VECTOR(i16, uint16_t)
LA_VECTOR(i32, uint32_t)
LA_VECTOR(i64, uint64_t)
LA_VECTOR(s8, int8_t)
LA_VECTOR(s16, int16_t)
LA_VECTOR(s32, int32_t)
LA_VECTOR(s64, int64_t)
LA_VECTOR(f32, float)
LA_VECTOR(f64, double)

/* A mask: all bits of a lane, or none. As wide as the lane of a full register. */
#if LA_MASK_BYTES == 8
typedef la_vs64 la_mask;
#elif LA_MASK_BYTES == 4
typedef la_vs32 la_mask;
#elif LA_MASK_BYTES == 2
typedef la_vs16 la_mask;
#else
typedef la_vs8 la_mask;
#endif
#define la_as_mask(x) __builtin_convertvector((x), la_mask)
LA_INLINE la_mask la_all_mask(int x) { return (la_mask){LA_EACH(-(x != 0))}; }
LA_INLINE int la_any(la_mask m)
{
    typedef long long quad __attribute__((vector_size(sizeof(la_mask)), may_alias));
    const quad q = (quad)m;
    long long r = 0;
    for (unsigned k = 0; k < sizeof(la_mask) / 8; k++)
        r |= q[k];
    return r != 0;
}

/* base + lane * step, in the elements' own arithmetic. */
LA_INLINE la_vi32 la_run_i32(uint32_t base, uint32_t step) { return la_all_i32(base) + (la_vi32){LA_NUMBERS} * step; }
LA_INLINE la_vi64 la_run_i64(int64_t base, int64_t step)
{
    return la_all_i64((uint64_t)base) + (la_vi64){LA_NUMBERS} * (uint64_t)step;
}

/* Both sides are known; the bits of one of them. */
#define LA_CHOOSE(name, mask)                                                                        \
    LA_INLINE la_v##name la_select_##name(la_mask m, la_v##name yes, la_v##name no)                  \
    {                                                                                                \
        const la_v##mask k = __builtin_convertvector(m, la_v##mask);                                 \
        return (la_v##name)((k & (la_v##mask)yes) | (~k & (la_v##mask)no));                          \
    }
LA_CHOOSE(i8, s8)
LA_CHOOSE(i16, s16)
LA_CHOOSE(i32, s32)
LA_CHOOSE(i64, s64)
LA_CHOOSE(f32, s32)
LA_CHOOSE(f64, s64)
LA_INLINE la_mask la_select_mask(la_mask m, la_mask yes, la_mask no) { return (m & yes) | (~m & no); }

LA_INLINE la_vf32 la_abs_f32(la_vf32 x) { return (la_vf32)((la_vi32)x & 0x7fffffffu); }
LA_INLINE la_vf64 la_abs_f64(la_vf64 x) { return (la_vf64)((la_vi64)x & UINT64_C(0x7fffffffffffffff)); }

/* Operations that no operator stands for: the machine's own where the registers have that width, else lane by lane.
 * The smaller and the greater one as minps and maxps have it: the second where they are equal or one is not a number. */
#define LA_LANEWISE(name, t, expression)                                                   \
    LA_INLINE la_v##t la_##name##_##t(la_v##t a, la_v##t b, la_v##t c)                               \
    {                                                                                                \
        la_v##t r = a;                                                                               \
        (void)b, (void)c;                                                                            \
        for (int l = 0; l < LA_LANES; l++)                                                           \
            r[l] = expression;                                                                       \
        return r;                                                                                    \
    }
#define LA_MACHINE(name, t, expression)                                                              \
    LA_INLINE la_v##t la_##name##_##t(la_v##t a, la_v##t b, la_v##t c)                               \
    {                                                                                                \
        (void)b, (void)c;                                                                            \
        return (la_v##t)expression;                                                                  \
    }
#if LA_LANES == 8 && defined(__AVX__)
LA_MACHINE(min, f32, __builtin_ia32_minps256(a, b))
LA_MACHINE(max, f32, __builtin_ia32_maxps256(a, b))
LA_MACHINE(sqrt, f32, __builtin_ia32_sqrtps256(a))
#elif LA_LANES == 4
LA_MACHINE(min, f32, __builtin_ia32_minps(a, b))
LA_MACHINE(max, f32, __builtin_ia32_maxps(a, b))
LA_MACHINE(sqrt, f32, __builtin_ia32_sqrtps(a))
#else
LA_LANEWISE(min, f32, a[l] < b[l] ? a[l] : b[l])
LA_LANEWISE(max, f32, a[l] > b[l] ? a[l] : b[l])
LA_LANEWISE(sqrt, f32, __builtin_sqrtf(a[l]))
#endif
#if LA_LANES == 4 && defined(__AVX__)
LA_MACHINE(min, f64, __builtin_ia32_minpd256(a, b))
LA_MACHINE(max, f64, __builtin_ia32_maxpd256(a, b))
LA_MACHINE(sqrt, f64, __builtin_ia32_sqrtpd256(a))
#elif LA_LANES == 2
LA_MACHINE(min, f64, __builtin_ia32_minpd(a, b))
LA_MACHINE(max, f64, __builtin_ia32_maxpd(a, b))
LA_MACHINE(sqrt, f64, __builtin_ia32_sqrtpd(a))
#else
LA_LANEWISE(min, f64, a[l] < b[l] ? a[l] : b[l])
LA_LANEWISE(max, f64, a[l] > b[l] ? a[l] : b[l])
LA_LANEWISE(sqrt, f64, __builtin_sqrt(a[l]))
#endif
#if LA_LANES == 8 && defined(__FMA__)
LA_MACHINE(fma, f32, __builtin_ia32_vfmaddps256(a, b, c))
#elif LA_LANES == 4 && defined(__FMA__)
LA_MACHINE(fma, f32, __builtin_ia32_vfmaddps(a, b, c))
#else
LA_LANEWISE(fma, f32, __builtin_fmaf(a[l], b[l], c[l]))
#endif
#if LA_LANES == 4 && defined(__FMA__)
LA_MACHINE(fma, f64, __builtin_ia32_vfmaddpd256(a, b, c))
#elif LA_LANES == 2 && defined(__FMA__)
LA_MACHINE(fma, f64, __builtin_ia32_vfmaddpd(a, b, c))
#else
LA_LANEWISE(fma, f64, __builtin_fma(a[l], b[l], c[l]))
#endif

/* Loads and stores of the lanes that a mask names: no other one is touched. */
#define LA_BY_LANE(name, type)                                                                       \
    LA_INLINE la_v##name la_load_##name(const void *at, la_mask m)                                   \
    {                                                                                                \
        la_v##name r = {0};                                                                          \
        for (int l = 0; l < LA_LANES; l++)                                                           \
            if (m[l])                                                                                \
                r[l] = ((const la_##name##_u *)at)[l];                                               \
        return r;                                                                                    \
    }                                                                                                \
    LA_INLINE void la_store_##name(void *at, la_mask m, la_v##name x)                                \
    {                                                                                                \
        for (int l = 0; l < LA_LANES; l++)                                                           \
            if (m[l])                                                                                \
                ((la_##name##_u *)at)[l] = (type)x[l];                                               \
    }
LA_BY_LANE(i8, uint8_t)
LA_BY_LANE(i16, uint16_t)
#if LA_LANES == 8 && defined(__AVX__)
#define LA_MASKED(name)                                                                              \
    LA_INLINE la_v##name la_load_##name(const void *at, la_mask m)                                   \
    {                                                                                                \
        return (la_v##name)__builtin_ia32_maskloadps256(at, __builtin_convertvector(m, la_vs32));    \
    }                                                                                                \
    LA_INLINE void la_store_##name(void *at, la_mask m, la_v##name x)                                \
    {                                                                                                \
        __builtin_ia32_maskstoreps256(at, __builtin_convertvector(m, la_vs32), (la_vf32)x);          \
    }
LA_MASKED(i32)
LA_MASKED(f32)
#else
LA_BY_LANE(i32, uint32_t)
LA_BY_LANE(f32, float)
#endif
#if LA_LANES == 4 && defined(__AVX__)
typedef long long la_quads __attribute__((vector_size(32)));
#define LA_MASKED_WIDE(name)                                                                         \
    LA_INLINE la_v##name la_load_##name(const void *at, la_mask m)                                   \
    {                                                                                                \
        return (la_v##name)__builtin_ia32_maskloadpd256(at, __builtin_convertvector(m, la_quads));   \
    }                                                                                                \
    LA_INLINE void la_store_##name(void *at, la_mask m, la_v##name x)                                \
    {                                                                                                \
        __builtin_ia32_maskstorepd256(at, __builtin_convertvector(m, la_quads), (la_vf64)x);         \
    }
LA_MASKED_WIDE(i64)
LA_MASKED_WIDE(f64)
#else
LA_BY_LANE(i64, int64_t)
LA_BY_LANE(f64, double)
#endif
#endif
