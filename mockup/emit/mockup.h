/* What every generated mock-up needs: exact conversions, bit views, and the check build's bookkeeping.
 * No intrinsics header: it costs seven times the compile time of everything else. SPDX-License-Identifier: MIT */
#ifndef LAYOUT_ADVISE_MOCKUP_H
#define LAYOUT_ADVISE_MOCKUP_H
#include "abi.h"

#define LA_EXPORT __attribute__((visibility("default")))
#define LA_INLINE static inline __attribute__((always_inline, unused))
/* The way ends here. */
#define LA_STOP __builtin_trap()
/* Iterations are not put side by side. */
#define LA_ONE_AFTER_ANOTHER __asm__ volatile("")
/* Hides that a trip count is a known constant: the original's compiler unrolled as it did, not more. */
#define LA_OPAQUE(x) __asm__("" : "+r"(x))
/* Any store may go to it. */
#define LA_REACHED(array) __asm__ volatile("" : : "r"(array) : "memory")
/* It is computed on each way that comes here. */
#define LA_READY(x) __asm__ volatile("" : : "g"(x))
/* A value of its own, not to be merged with another unknown one of the same start (hence its name in the text). */
#define LA_UNKNOWN(x) __asm__("/* " #x " */" : "+r"(x))

/* A kernel, which its caller knows nothing of. gcc 12 takes one for pure where an address of it is reached from another pointer
 * times a constant (4 * p - 3 * p), as its loop passes make them of two strides in a record, and drops the call. */
#ifdef __clang__
#define LA_APART __attribute__((noinline))
#else
#define LA_APART __attribute__((noipa))
#endif

/* No iteration of the loop that follows stores what another one loads or stores. */
#ifdef LA_UNTOLD
#define LA_INDEPENDENT
#elif defined(__clang__)
#define LA_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define LA_INDEPENDENT _Pragma("GCC ivdep")
#endif

/* gcc 12 fuses vectorised products with the mixed additions and subtractions after them (vfmaddsub), -ffp-contract=off or
 * not. Each product is to be rounded where the original rounds it. Where there is no such mixture there is no barrier
 * (LA_UNMIXED): gcc takes it for something that may trap, and makes no vectors of a loop that has it under a condition. */
#if defined(__GNUC__) && __GNUC__ >= 12 && !defined(__clang__) && !defined(LA_UNMIXED)
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

/* Signed bytes side by side, and the number of which a bit tells of each whether it is set (all of it, or its top bit). */
typedef signed char la_i8s;
typedef char la_v16i8 __attribute__((vector_size(16)));
typedef char la_v32i8 __attribute__((vector_size(32)));
typedef la_i8s la_i8x16 __attribute__((vector_size(16)));
typedef la_i8x16 la_i8x16_u __attribute__((may_alias, aligned(1)));
#define LA_MASK16(...) ((uint32_t)__builtin_ia32_pmovmskb128((la_v16i8)(__VA_ARGS__)))
#ifdef __AVX2__
typedef la_i8s la_i8x32 __attribute__((vector_size(32)));
typedef la_i8x32 la_i8x32_u __attribute__((may_alias, aligned(1)));
#define LA_MASK32(...) ((uint32_t)__builtin_ia32_pmovmskb256((la_v32i8)(__VA_ARGS__)))
#endif

/* A pointer to one of `count` elements of `stride` bytes from `base` on is kept as `first` + `step` times its number, all
 * others as they are. */
#define LA_NO_CODE INT64_MIN
LA_INLINE int64_t la_code_of(int64_t pointer, int64_t base, int64_t stride, int64_t count, int64_t step, int64_t first)
{
    const uint64_t distance = (uint64_t)pointer - (uint64_t)base;
    if (distance < (uint64_t)(stride * count) && distance % (uint64_t)stride == 0)
        return (int64_t)(distance / (uint64_t)stride) * step + first;
    const int taken = (uint64_t)pointer - (uint64_t)first < (uint64_t)(count * step); /* for a code */
    return taken ? LA_NO_CODE : pointer;
}

LA_INLINE int64_t la_brought(int64_t code)
{
    if (code == LA_NO_CODE)
        __builtin_trap();
    return code;
}

LA_INLINE int64_t la_encode(int64_t pointer, int64_t base, int64_t stride, int64_t count, int64_t step, int64_t first)
{
    return la_brought(la_code_of(pointer, base, stride, count, step, first));
}

LA_INLINE int64_t la_decode(int64_t code, int64_t base, int64_t stride, int64_t count, int64_t step, int64_t first)
{
    const uint64_t distance = (uint64_t)code - (uint64_t)first;
    return distance < (uint64_t)(count * step) ? base + stride * ((int64_t)distance / step) : code;
}

/* How many pieces of `size` bytes there are in `bytes`, of which the compiler knows that there is no rest: it multiplies by
 * the same size without dividing first. */
#define LA_PIECES(bytes, size) ((const char (*)[size])(bytes) - (const char (*)[size])0)

/* Elements in several blocks: ``count`` from ``address`` on, the first of them number ``first``; ascending in both. */
struct la_block {
    int64_t address, first, count;
};

/* ``number`` blocks, each of ``each`` elements (0: not all have as many). What may hold an address are those from
 * ``starts[b]`` to ``starts[b + 1]``, where b counts stretches of ``1 << shift`` bytes from the first block on. */
struct la_pool {
    const struct la_block *blocks;
    int32_t *starts;
    int64_t number, stretches, shift, each;
};

/* Looked up, and not where nothing uses it: compilers keep a loop that may not end, but no call of a pure function. */
#define LA_LOOKUP static __attribute__((pure, noinline, unused))

/* Once, when the mock-up is loaded: an address is then found in one or two steps, not in fifteen. */
LA_INLINE void la_begin(const struct la_pool *pool)
{
    int64_t block = 0;
    for (int64_t b = 0; b < pool->stretches; b++) {
        const int64_t begin = pool->blocks[0].address + (int64_t)((uint64_t)b << pool->shift);
        while (block + 1 < pool->number && pool->blocks[block + 1].address <= begin)
            block++;
        pool->starts[b] = (int32_t)block;
    }
    pool->starts[pool->stretches] = (int32_t)(pool->number - 1);
}

/* The last block that begins at or before an address; the first one where there is none. */
LA_INLINE const struct la_block *la_block_at(const struct la_pool *pool, int64_t address)
{
    const int64_t distance = (int64_t)((uint64_t)address - (uint64_t)pool->blocks[0].address), last = pool->stretches - 1;
    int64_t b = distance < 0 ? 0 : (int64_t)((uint64_t)distance >> pool->shift);
    b = b < last ? b : last;
    int64_t low = pool->starts[b];
    for (int64_t left = pool->starts[b + 1] - low + 1; left > 1;) {
        const int64_t half = left / 2;
        low = address >= pool->blocks[low + half].address ? low + half : low;
        left -= half;
    }
    return pool->blocks + low;
}

/* The number of the element at an address, for one between two blocks that from the block before it. */
LA_LOOKUP int64_t la_number(const struct la_pool *pool, int64_t stride, int64_t address)
{
    const struct la_block *const block = la_block_at(pool, address);
    return block->first + (address - block->address) / stride;
}

/* Bytes from the first element to an address, as if the blocks followed each other; negative outside of them. */
LA_LOOKUP int64_t la_distance(const struct la_pool *pool, int64_t stride, int64_t address)
{
    const struct la_block *const block = la_block_at(pool, address);
    const uint64_t within = (uint64_t)address - (uint64_t)block->address;
    return within < (uint64_t)(stride * block->count) ? stride * block->first + (int64_t)within : -1;
}

/* The address of an element. */
LA_LOOKUP int64_t la_element(const struct la_pool *pool, int64_t stride, int64_t index)
{
    int64_t low = 0;
    if (pool->each)
        low = pool->each == 1 ? index : index / pool->each;
    for (int64_t left = pool->each ? 0 : pool->number; left > 1;) {
        const int64_t half = left / 2;
        low = index >= pool->blocks[low + half].first ? low + half : low;
        left -= half;
    }
    return pool->blocks[low].address + stride * (index - pool->blocks[low].first);
}

LA_INLINE int64_t la_code_of_among(
    int64_t pointer, const struct la_pool *pool, int64_t stride, int64_t count, int64_t step, int64_t first)
{
    const int64_t distance = la_distance(pool, stride, pointer);
    if (distance >= 0 && distance % stride == 0)
        return distance / stride * step + first;
    return (uint64_t)pointer - (uint64_t)first < (uint64_t)(count * step) ? LA_NO_CODE : pointer;
}

LA_INLINE int64_t la_encode_among(
    int64_t pointer, const struct la_pool *pool, int64_t stride, int64_t count, int64_t step, int64_t first)
{
    return la_brought(la_code_of_among(pointer, pool, stride, count, step, first));
}

LA_INLINE int64_t la_decode_among(
    int64_t code, const struct la_pool *pool, int64_t stride, int64_t count, int64_t step, int64_t first)
{
    const uint64_t distance = (uint64_t)code - (uint64_t)first;
    return distance < (uint64_t)(count * step) ? la_element(pool, stride, (int64_t)distance / step) : code;
}

/* Whether an old address is one of the ``size`` bytes from ``base`` on: what an access goes to that reaches other memory too. */
#define LA_WITHIN(address, base, size) ((uint64_t)(address) - (uint64_t)(base) < (uint64_t)(size))

/* What lies ``offset`` bytes into a record, as its member. */
#define LA_MEMBER(type, record, offset) \
    (((struct { uint8_t before[offset]; type value; } __attribute__((may_alias)) *)(record))->value)

/* A pointer from where a call leaves it, at its beginning; of a call that does not come to it the place may be none. */
LA_INLINE int64_t la_kept(const uint8_t *place) { return (uint64_t)place < 4096 ? 0 : *(const la_i64_u *)place; }
LA_INLINE double la_as_f64(int64_t x) { double r; __builtin_memcpy(&r, &x, 8); return r; }
LA_INLINE float la_as_f32(uint32_t x) { float r; __builtin_memcpy(&r, &x, 4); return r; }
LA_INLINE int64_t la_as_i64(double x) { int64_t r; __builtin_memcpy(&r, &x, 8); return r; }
LA_INLINE uint32_t la_as_i32(float x) { uint32_t r; __builtin_memcpy(&r, &x, 4); return r; }

/* Of the 16 bytes low, high those that the bytes of the mask number; 0 where a byte's top bit is set (half a pshufb). */
typedef int64_t la_v2i64 __attribute__((vector_size(16)));
LA_INLINE int64_t la_pick_bytes(int64_t low, int64_t high, int64_t mask)
{
    const la_v2i64 source = {low, high};
#ifdef __SSSE3__
    const la_v2i64 places = {mask, mask};
    return ((la_v2i64)__builtin_ia32_pshufb128((la_v16i8)source, (la_v16i8)places))[0];
#else
    const la_v16i8 bytes = (la_v16i8)source;
    uint64_t picked = 0;
    for (int i = 0; i < 8; i++) {
        const uint8_t place = (uint8_t)((uint64_t)mask >> 8 * i);
        picked |= place & 128 ? 0 : (uint64_t)(uint8_t)bytes[place & 15] << 8 * i;
    }
    return (int64_t)picked;
#endif
}

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

/* To numbers without a sign, as AVX-512's vcvttsd2usi: all ones where it does not fit. */
#define LA_UNSIGNED(from, ftype, to, itype, above) \
    LA_INLINE itype la_##from##_to_##to(ftype x) { return x > -1 && x < (above) ? (itype)x : (itype)-1; }
LA_UNSIGNED(f64, double, u32, uint32_t, 4294967296.0)
LA_UNSIGNED(f64, double, u64, uint64_t, 18446744073709551616.0)
LA_UNSIGNED(f32, float, u32, uint32_t, 4294967296.0f)
LA_UNSIGNED(f32, float, u64, uint64_t, 18446744073709551616.0f)

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

/* A lane of a masked load. gcc 12 -O3 makes masked loads again of several such side by side in a loop, and takes wrong masks
 * where these were combined of compares (plain C shows it, too): those loops are left as they are. */
#ifdef __clang__
#define LA_GUARDED const
#else
#define LA_GUARDED const volatile
#endif

/* Several values side by side, as one packed instruction has them: in registers, and in memory at any address. */
#define LA_PACK(type, element, lanes)                                                          \
    typedef element la_##type##x##lanes __attribute__((vector_size(lanes * sizeof(element)))); \
    typedef la_##type##x##lanes la_##type##x##lanes##_u __attribute__((may_alias, aligned(1)));
LA_PACK(f64, double, 2)
LA_PACK(f64, double, 4)
LA_PACK(f32, float, 2)
LA_PACK(f32, float, 4)
LA_PACK(f32, float, 8)

/* Operations that no operator stands for: the machine's own where it has registers of that width, else lane by lane. The
 * smaller and the greater one as minps and maxps have it: the second where they are equal or one is not a number.
 * fmaddsub: x * y - z in even lanes and x * y + z in odd ones, rounded once; fmsubadd the other way round. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpsabi" /* always inlined: nothing is passed */
#define LA_WHOLE(T, name, list, expression) LA_INLINE la_##T la_##name##_##T list { return (la_##T)expression; }
#define LA_LANES_OF(T, name, list, expression)                \
    LA_INLINE la_##T la_##name##_##T list                     \
    {                                                         \
        la_##T r;                                             \
        for (unsigned k = 0; k < sizeof r / sizeof r[0]; k++) \
            r[k] = expression;                                \
        return r;                                             \
    }
#define LA_ORDINARY(T, suffix)                                                       \
    LA_WHOLE(T, min, (la_##T x, la_##T y), __builtin_ia32_min##suffix(x, y))         \
    LA_WHOLE(T, max, (la_##T x, la_##T y), __builtin_ia32_max##suffix(x, y))         \
    LA_WHOLE(T, sqrt, (la_##T x), __builtin_ia32_sqrt##suffix(x))
#define LA_ORDINARY_LANES(T, root)                                                   \
    LA_LANES_OF(T, min, (la_##T x, la_##T y), x[k] < y[k] ? x[k] : y[k])             \
    LA_LANES_OF(T, max, (la_##T x, la_##T y), x[k] > y[k] ? x[k] : y[k])             \
    LA_LANES_OF(T, sqrt, (la_##T x), root(x[k]))
LA_ORDINARY_LANES(f32x2, __builtin_sqrtf)
LA_ORDINARY(f64x2, pd)
LA_ORDINARY(f32x4, ps)
#ifdef __AVX__
LA_ORDINARY(f64x4, pd256)
LA_ORDINARY(f32x8, ps256)
#else
LA_ORDINARY_LANES(f64x4, __builtin_sqrt)
LA_ORDINARY_LANES(f32x8, __builtin_sqrtf)
#endif
#define LA_TURNS(T, suffix) LA_WHOLE(T, addsub, (la_##T x, la_##T y), __builtin_ia32_addsub##suffix(x, y))
#define LA_TURNS_LANES(T) LA_LANES_OF(T, addsub, (la_##T x, la_##T y), k % 2 ? x[k] + y[k] : x[k] - y[k])
LA_TURNS_LANES(f32x2)
#ifdef __SSE3__
LA_TURNS(f64x2, pd)
LA_TURNS(f32x4, ps)
#else
LA_TURNS_LANES(f64x2)
LA_TURNS_LANES(f32x4)
#endif
#ifdef __AVX__
LA_TURNS(f64x4, pd256)
LA_TURNS(f32x8, ps256)
#else
LA_TURNS_LANES(f64x4)
LA_TURNS_LANES(f32x8)
#endif
#define LA_FUSED(T, suffix)                                                                            \
    LA_WHOLE(T, fma, (la_##T x, la_##T y, la_##T z), __builtin_ia32_vfmadd##suffix(x, y, z))           \
    LA_WHOLE(T, fmaddsub, (la_##T x, la_##T y, la_##T z), __builtin_ia32_vfmaddsub##suffix(x, y, z))   \
    LA_WHOLE(T, fmsubadd, (la_##T x, la_##T y, la_##T z), __builtin_ia32_vfmaddsub##suffix(x, y, -z))
#define LA_FUSED_LANES(T, fused)                                                                                   \
    LA_LANES_OF(T, fma, (la_##T x, la_##T y, la_##T z), fused(x[k], y[k], z[k]))                                   \
    LA_LANES_OF(T, fmaddsub, (la_##T x, la_##T y, la_##T z), fused(x[k], y[k], k % 2 ? z[k] : -z[k]))              \
    LA_LANES_OF(T, fmsubadd, (la_##T x, la_##T y, la_##T z), fused(x[k], y[k], k % 2 ? -z[k] : z[k]))
#if defined(__FMA__) && defined(__clang__)
/* clang takes two lanes apart for good; four of them, half of which hold anything, stay one instruction */
#define LA_FOUR(x) __builtin_shufflevector(x, x, 0, 1, -1, -1)
#define LA_FUSED_PAIR(name)                                                                  \
    LA_INLINE la_f32x2 la_##name##_f32x2(la_f32x2 x, la_f32x2 y, la_f32x2 z)                 \
    {                                                                                        \
        const la_f32x4 r = la_##name##_f32x4(LA_FOUR(x), LA_FOUR(y), LA_FOUR(z));            \
        return __builtin_shufflevector(r, r, 0, 1);                                          \
    }
#else
LA_FUSED_LANES(f32x2, __builtin_fmaf)
#endif
#ifdef __FMA__
LA_FUSED(f64x2, pd)
LA_FUSED(f64x4, pd256)
LA_FUSED(f32x4, ps)
LA_FUSED(f32x8, ps256)
#ifdef __clang__
LA_FUSED_PAIR(fma)
LA_FUSED_PAIR(fmaddsub)
LA_FUSED_PAIR(fmsubadd)
#endif
#else
LA_FUSED_LANES(f64x2, __builtin_fma)
LA_FUSED_LANES(f64x4, __builtin_fma)
LA_FUSED_LANES(f32x4, __builtin_fmaf)
LA_FUSED_LANES(f32x8, __builtin_fmaf)
#endif
LA_LANES_OF(f64x2, abs, (la_f64x2 x), __builtin_fabs(x[k]))
LA_LANES_OF(f64x4, abs, (la_f64x4 x), __builtin_fabs(x[k]))
LA_LANES_OF(f32x2, abs, (la_f32x2 x), __builtin_fabsf(x[k]))
LA_LANES_OF(f32x4, abs, (la_f32x4 x), __builtin_fabsf(x[k]))
LA_LANES_OF(f32x8, abs, (la_f32x8 x), __builtin_fabsf(x[k]))
#pragma GCC diagnostic pop

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
#ifdef LA_ENDS /* as memory that is not there, and not as a way that ends */
    __asm__ volatile("movb $0, 8" ::: "memory");
#endif
    if (c->mismatches++ == 0) {
        c->first_site = site;
        c->first_old = (uint64_t)old;
        c->first_new = (uint64_t)(uintptr_t)place;
    }
}
#endif
