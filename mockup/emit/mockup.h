/* What every generated mock-up needs: exact conversions, bit views, and the check build's bookkeeping.
 * No intrinsics header: it costs seven times the compile time of everything else. SPDX-License-Identifier: MIT */
#ifndef LAYOUT_ADVISE_MOCKUP_H
#define LAYOUT_ADVISE_MOCKUP_H
#include "abi.h"

#define LA_EXPORT __attribute__((visibility("default")))
#define LA_INLINE static inline __attribute__((always_inline, unused))
/* Hides that a trip count is a known constant: the original's compiler unrolled as it did, not more. */
#define LA_OPAQUE(x) __asm__("" : "+r"(x))
/* A value of its own, not to be merged with another unknown one of the same start (hence its name in the text). */
#define LA_UNKNOWN(x) __asm__("/* " #x " */" : "+r"(x))

/* No iteration of the loop that follows stores what another one loads or stores. */
#ifdef __clang__
#define LA_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define LA_INDEPENDENT _Pragma("GCC ivdep")
#endif

/* gcc 12 fuses vectorised products with the mixed additions and subtractions after them (vfmaddsub), -ffp-contract=off or
 * not. Each product is to be rounded where the original rounds it. */
#if defined(__GNUC__) && __GNUC__ >= 12 && !defined(__clang__)
#define LA_PRODUCT(x) __builtin_assoc_barrier(x)
#else
#define LA_PRODUCT(x) (x)
#endif

/* Memory as the machine sees it: any type may alias any other; the _u kinds promise no alignment. */
#define LA_CELL(name, type, size)                                     \
    typedef type name __attribute__((may_alias, aligned(size)));      \
    typedef type name##_u __attribute__((may_alias, aligned(1)));
LA_CELL(la_i8, uint8_t, 1)
LA_CELL(la_i16, uint16_t, 2)
LA_CELL(la_i32, uint32_t, 4)
LA_CELL(la_i64, int64_t, 8)
LA_CELL(la_f32, float, 4)
LA_CELL(la_f64, double, 8)

LA_INLINE double la_as_f64(int64_t x) { double r; __builtin_memcpy(&r, &x, 8); return r; }
LA_INLINE float la_as_f32(uint32_t x) { float r; __builtin_memcpy(&r, &x, 4); return r; }
LA_INLINE int64_t la_as_i64(double x) { int64_t r; __builtin_memcpy(&r, &x, 8); return r; }
LA_INLINE uint32_t la_as_i32(float x) { uint32_t r; __builtin_memcpy(&r, &x, 4); return r; }

/* Truncation as cvttsd2si does it; out of range the instruction gives INT_MIN, which a cast may do or not do: constants
 * are folded by the compiler, and to something else, so those take the long way. */
#define LA_TRUNCATE(from, ftype, to, itype, low, high)                                           \
    LA_INLINE itype la_##from##_to_##to(ftype x)                                                 \
    {                                                                                            \
        if (__builtin_constant_p(x))                                                             \
            return x >= (low) && x < (high) ? (itype)x : (itype)(low);                           \
        return (itype)x;                                                                         \
    }
LA_TRUNCATE(f64, double, i32, int32_t, -2147483648.0, 2147483648.0)
LA_TRUNCATE(f64, double, i64, int64_t, -9223372036854775808.0, 9223372036854775808.0)
LA_TRUNCATE(f32, float, i32, int32_t, -2147483648.0f, 2147483648.0f)
LA_TRUNCATE(f32, float, i64, int64_t, -9223372036854775808.0f, 9223372036854775808.0f)

/* Rounding by MXCSR, as cvtsd2si. */
#define LA_ROUND(from, ftype, to, itype, instruction)                                            \
    LA_INLINE itype la_##from##_rint_##to(ftype x)                                               \
    {                                                                                            \
        itype r;                                                                                 \
        __asm__(instruction " {%1, %0|%0, %1}" : "=r"(r) : "x"(x));                              \
        return r;                                                                                \
    }
LA_ROUND(f64, double, i32, int32_t, "cvtsd2si")
LA_ROUND(f64, double, i64, int64_t, "cvtsd2si")
LA_ROUND(f32, float, i32, int32_t, "cvtss2si")
LA_ROUND(f32, float, i64, int64_t, "cvtss2si")

LA_INLINE int la_popcnt(uint64_t x, int bits) { (void)bits; return __builtin_popcountll(x); }
LA_INLINE int la_lzcnt(uint64_t x, int bits) { return x ? __builtin_clzll(x) - 64 + bits : bits; }
LA_INLINE int la_tzcnt(uint64_t x, int bits) { return x ? __builtin_ctzll(x) : bits; }

LA_INLINE void la_get(void *to, const struct la_registers *r, int vector, int at, int bytes)
{
    __builtin_memcpy(to, r->vector[vector] + at, (unsigned)bytes);
}

/* Check build: one record a reference, and every new place against the map of the old one. */
LA_INLINE void la_record(struct la_check *c, int64_t old, uint64_t site)
{
    if (c->count < c->capacity)
        c->records[c->count] = ((uint64_t)old & 0xffffffffffff) | site << 48;
    c->count++;
}

LA_INLINE void la_compare(struct la_check *c, int64_t old, const void *place, const void *expected, uint64_t site)
{
    if (place == expected)
        return;
    if (c->mismatches++ == 0) {
        c->first_site = site;
        c->first_old = (uint64_t)old;
        c->first_new = (uint64_t)(uintptr_t)place;
    }
}
#endif
