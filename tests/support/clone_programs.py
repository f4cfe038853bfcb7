# ruff: noqa: E501  (C source, a line a statement list)
"""Small C programs whose function ``hot`` the tests of the clone trace, and how to get at it."""

from __future__ import annotations

import subprocess
from pathlib import Path

from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from layout_advise.tracer.code.region import CodeRange, Region

MAIN = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define NOINLINE __attribute__((noinline, noclone))
%s
int main(void) { long total = 0; prepare(); for (int call = 0; call < 3; call++) total += hot(call + 20);
    printf("%%ld\n", total); return 0; }
"""

PROGRAMS = {
    "particles": r"""
struct p { double x, v, a, m, q; }; static struct p *p; static void prepare(void) { p = calloc(400, sizeof *p); }
NOINLINE long hot(long n) { for (long i = 0; i < 300; i++) { p[i].x += p[i].v * 0.5 + n; p[i].v -= p[i].m; } return (long)p[7].x; }
""",
    "triangle": r"""
static double m[60][60]; static void prepare(void) { m[3][3] = 1; }
NOINLINE long hot(long n) { double s = 0; for (long i = 0; i < n; i++) for (long j = i; j < n; j++) { s += m[i][j]; m[j][i] = s; }
    return (long)s; }
""",
    "switch": r"""
static int kinds[500]; static long sums[16]; static void prepare(void) { for (int i = 0; i < 500; i++) kinds[i] = rand() %% 12; }
NOINLINE long hot(long n) { long t = 0; for (int i = 0; i < 400; i++) switch (kinds[i]) {
    case 0: sums[0] += i; /* falls through */ case 1: sums[1] ^= n; break; case 2: t += sums[3]; sums[2] = t; break;
    case 3: sums[kinds[i + 1]]++; break; case 4: t ^= sums[5]; /* falls through */ case 5: sums[4] -= t; break;
    case 6: t += 3; break; case 7: sums[7] = t; break; case 8: t -= sums[n & 7]; break; case 9: sums[9]++; sums[10]--; break;
    default: t++; } return t + sums[4]; }
""",
    "goto": r"""
static long m[64]; static void prepare(void) { for (int i = 0; i < 64; i++) m[i] = rand() %% 3; }
NOINLINE long hot(long n) { static void *const to[] = {&&a, &&b, &&c}; long i = 0, t = n;
    goto *to[m[0]]; a: t += m[i]; if (++i > 60) return t; goto *to[m[i]]; b: m[i] += 0; t ^= i; if (++i > 60) return t;
    goto *to[m[i]]; c: t -= m[i + 1]; m[i + 2] |= 0; if (++i > 60) return t; goto *to[m[i]]; }
""",
    "recursion": r"""
struct t { struct t *l, *r; long v; }; static struct t *root;
static struct t *grow(int d) { struct t *t = calloc(1, sizeof *t); t->v = d; if (d) { t->l = grow(d - 1); t->r = grow(d / 2); } return t; }
static void prepare(void) { root = grow(9); }
static NOINLINE long walk(struct t *t) { return t ? walk(t->l) * 3 + t->v + walk(t->r) : 1; }
NOINLINE long hot(long n) { root->v = n; return walk(root) + walk(root->r); }
""",
    "pointer": r"""
static long m[300]; static void prepare(void) { m[5] = 3; }
static NOINLINE long up(long *p) { return *p += 2; } static NOINLINE long down(long *p) { return *p -= 1; }
static long (*volatile which[2])(long *) = {up, down};
NOINLINE long hot(long n) { long t = up(m) + down(m + 1); for (int i = 0; i < 250; i++) t += which[i & 1](m + i); return t + n; }
""",
    "pointers": r"""
static long m[300]; static void prepare(void) { m[5] = 3; }
#define STEP(name, by) static NOINLINE long name(long *p) { return *p += by; }
STEP(a, 1) STEP(b, 2) STEP(c, 3) STEP(d, 4) STEP(e, 5) STEP(f, 6)
static long (*volatile which[6])(long *) = {a, b, c, d, e, f};
NOINLINE long hot(long n) { long t = 0; for (int i = 0; i < 250; i++) t += which[i %% 6](m + i); return t + n; }
""",
    "conditional": r"""
static float a[777], b[777]; static void prepare(void) { for (int i = 0; i < 777; i++) a[i] = (float)(rand() %% 9); }
NOINLINE long hot(long n) { for (int i = 0; i < 701; i++) if (a[i] > 4) b[i] = a[i] * (float)n; return (long)b[30]; }
""",
    "gather": r"""
#include <immintrin.h>
static double v[2000], o[500]; static float f[2000], g[500]; static int at[500]; static long wide[500];
static void prepare(void) { for (int i = 0; i < 500; i++) { at[i] = rand() %% 2000; wide[i] = rand() %% 2000; } }
__attribute__((target("avx2"))) NOINLINE long hot(long n) { __m256 some = _mm256_castsi256_ps(_mm256_setr_epi32(-1, 0, -1, -1, 0, 0, -1, 0));
    for (int i = 0; i < 96; i += 8) {
        __m256i eight = _mm256_loadu_si256((void *)(at + i)), four = _mm256_loadu_si256((void *)(wide + i));
        _mm256_storeu_pd(o + i, _mm256_i32gather_pd(v, _mm256_castsi256_si128(eight), 8));
        _mm256_storeu_pd(o + i + 4, _mm256_i64gather_pd(v + n, four, 4));
        _mm256_storeu_ps(g + i, _mm256_mask_i32gather_ps(some, f, eight, some, 4));
        _mm_storeu_ps(g + i + 8, _mm256_i64gather_ps(f, four, 4));
        _mm_storeu_ps(g + i + 12, _mm_i64gather_ps(f, _mm256_castsi256_si128(four), 4));
        _mm_storeu_pd(o + i + 8, _mm_mask_i32gather_pd(_mm_set1_pd(1), v, _mm256_castsi256_si128(eight), _mm_set_pd(-1, n - 22), 8));
        _mm256_maskstore_ps(g + i, eight, some);
    } return (long)o[4] + (long)g[9]; }
""",
    "strings": r"""
struct big { long w[90]; }; static struct big x, y; static char text[200]; static void prepare(void) { memset(text, 'a', 150); }
NOINLINE long hot(long n) { long r = 0; for (int i = 0; i < 5; i++) { void *d = x.w + i, *s = y.w + 2 * i; long c = n - 4 * i;
    __asm__ volatile("rep movsq" : "+D"(d), "+S"(s), "+c"(c) : : "memory"); d = x.w; c = i;
    __asm__ volatile("rep stosl" : "+D"(d), "+c"(c) : "a"(n) : "memory"); d = text; c = 180 - 50 * i;
    __asm__ volatile("repe scasb; sete %%b0" : "+q"(r), "+D"(d), "+c"(c) : "a"('a') : "memory"); r += c;
    d = text; s = text + i; c = 20 * i; __asm__ volatile("repe cmpsb; setne %%b0" : "+q"(r), "+D"(d), "+S"(s), "+c"(c) : : "memory");
    r += c; } return r; }
""",
    "crowded": r"""
static long m[64]; static void prepare(void) { for (int i = 0; i < 64; i++) m[i] = rand(); }
NOINLINE long hot(long n) { long a = n, b = m[1], c = m[2], d = m[3], e = m[4], f = m[5], g = m[6], h = m[7], i = m[8], j = m[9],
    k = m[10], l = m[11]; for (int r = 0; r < 90; r++) { a += b ^ m[r & 7]; b -= c * a; c ^= d + m[b & 63]; d += e; e -= f ^ a; f += g;
    g ^= h; h -= i + c; i += j; j ^= k; k += l - d; l += m[(l ^ r) & 31]; m[r & 63] = a + l; } return a+b+c+d+e+f+g+h+i+j+k+l; }
""",
    "frame": r"""
static void prepare(void) {} static NOINLINE void fill(long *p, long n) { for (long i = 0; i < n; i++) p[i] = i * n; }
__attribute__((optimize("stack-protector-all"))) NOINLINE long hot(long n) { long local[100]; char *more = __builtin_alloca(n * 8);
    memset(more, 1, 8); fill(local, n); long t = more[3]; for (long i = 0; i < n; i++) t += local[i] * local[n - i]; return t; }
""",
    "flags": r"""
static long m[40]; static void prepare(void) { m[3] = -1; }
NOINLINE long hot(long n) { long t = 0; for (long i = 0; i < 30; i++) { unsigned char o = 0, c = 0;
    __asm__ volatile("cmpq %%4, %%3; jmp 1f; 1: movq (%%5), %%0; seto %%1; movq 8(%%5), %%0; setc %%2; adcq 16(%%5), %%0"
        : "=&r"(t), "=&q"(o), "=&q"(c) : "r"(i - 9), "r"((i & 1) ? n - 30 : (long)0x8000000000000000), "r"(m + i) : "cc", "memory");
    m[i] = t + 2 * o + c; t += m[i]; } __asm__ volatile("mov $5, %%%%ecx; 2: addq (%%1), %%0; loop 2b" : "+r"(t) : "r"(m) : "rcx"); return t; }
""",
    "tail": r"""
static long m[300]; static void prepare(void) { m[5] = 3; }
static NOINLINE long up(long *p) { return *p += 2; } static NOINLINE long down(long *p) { return *p -= 1; }
static long (*volatile which[2])(long *) = {up, down};
static NOINLINE long walk(long *p) { p[1] ^= p[0]; return up(p + 2); }
static NOINLINE long fill(long *p, long k) { p[3] += k; return which[k & 1](p); }
NOINLINE long hot(long n) { for (long i = 0; i < 40; i++) m[i + 100] += walk(m + i) - fill(m + 2 * i, i); m[n] = n; return fill(m + 7, n); }
""",
    "x87": r"""
static long double t[60]; static double d[60]; static float f[60]; static int k[60]; static short h[60]; static long l[60];
static void prepare(void) { for (int i = 0; i < 60; i++) { t[i] = i + 0.5L; d[i] = 3 - i; f[i] = i; k[i] = 9 * i; h[i] = i - 7; l[i] = 1L << i; } }
NOINLINE long hot(long n) { for (int i = 0; i < 50; i++) { t[i] = t[i + 1] * d[i] + f[i] - k[i] / (t[i] + 100) + h[i]; d[i] = (double)(t[i] - l[i]);
    f[i] = (float)(t[i] + n); k[i] = (int)t[i + 2]; h[i] = (short)t[i + 3]; l[i] = (long)(t[i] / 1e9L); if (t[i] > t[i + 1]) t[i + 2] = -t[i + 2]; }
    __asm__ volatile("fildl %%1; fiaddl %%2; fisubl %%1; fcomps %%3; fnstcw %%4; fldcw %%4; fnstsw %%0" : "=m"(h[1]) : "m"(k[1]), "m"(k[2]), "m"(f[3]), "m"(h[2]) : "memory", "st");
    return k[7] + h[9]; }
""",
    "atomics": r"""
static unsigned long bits[16]; static long w[64]; static int v[64]; static unsigned char c[64]; static __attribute__((aligned(16))) long pair[8];
static void prepare(void) { for (int i = 0; i < 64; i++) { w[i] = i %% 5; c[i] = i; v[i] = -i; } }
NOINLINE long hot(long n) { long t = 0; for (long i = 0; i < 30; i++) { unsigned char b; long a = pair[0], d = pair[1];
    __asm__ volatile("btsq $5, %%0; btq $9, %%0; setc %%1; lock btcl $3, %%0; btrw $2, %%0" : "+m"(bits[i & 7]), "=q"(b) : : "cc");
    __asm__ volatile("lock cmpxchg16b %%0; setz %%1" : "+m"(*(__int128 *)pair), "+q"(b), "+a"(a), "+d"(d) : "b"(n + i), "c"(i) : "cc", "memory");
    t += b + __atomic_fetch_add(&w[i], n, 5) + __atomic_exchange_n(&v[i + 1], (int)i, 5);
    long e = i %% 5; t += __atomic_compare_exchange_n(&w[i + 3], &e, t, 0, 5, 5); t += e; __atomic_fetch_or(&c[i], 3, 5);
    unsigned char z = (unsigned char)i; __atomic_compare_exchange_n(&c[i + 9], &z, 7, 0, 5, 5);
    __asm__ volatile("cmpxchgl %%1, %%0" : "+m"(v[i]) : "r"((int)t), "a"((int)i) : "cc"); } return t; }
""",
    "masked": r"""
#include <immintrin.h>
static double x[300], y[300]; static int p[300], q[300]; static long u[300];
static void prepare(void) { for (int i = 0; i < 300; i++) { x[i] = rand() %% 7 - 3; p[i] = rand(); q[i] = rand() - (1 << 30); u[i] = (long)(rand() - (1 << 30)) << 33; } }
__attribute__((target("avx2"))) NOINLINE long hot(long n) { long t = n; for (int i = 0; i < 160; i += 4) {
    __m256i four = _mm256_loadu_si256((void *)(u + i)); __m128i small = _mm_loadu_si128((void *)(q + i));
    _mm256_maskstore_pd(y + i, four, _mm256_maskload_pd(x + i, four)); _mm_maskstore_epi32(p + i + 1, small, _mm_maskload_epi32(q + i + 2, small));
    _mm256_maskstore_epi64((long long *)u + i + 100, four, _mm256_maskload_epi64((long long *)u + i + 101, four));
    _mm_maskstore_pd(x + i, _mm256_castsi256_si128(four), _mm_set1_pd(t)); t += p[i]; } return t; }
""",
}  # fmt: skip

WIDE_PROGRAMS = {
    "wide-gather": r"""
#include <immintrin.h>
static double v[2000], o[2000]; static float f[2000]; static int at[500], q[2000]; static long wide[500], w[2000];
static void prepare(void) { for (int i = 0; i < 500; i++) { at[i] = 3 * i %% 2000; wide[i] = 7 * i %% 2000; } for (int i = 0; i < 2000; i++) w[i] = q[i] = i; }
NOINLINE long hot(long n) { for (int i = 0; i < 480; i += 16) { __mmask16 some = (__mmask16)(i * 77 + n);
    __m512i many = _mm512_loadu_si512(at + i), eight = _mm512_loadu_si512(wide + i); __m256i half = _mm512_castsi512_si256(many);
    __m512d d = _mm512_mask_i32gather_pd(_mm512_set1_pd(1), (__mmask8)some, half, v, 8);
    __m512i l = _mm512_mask_i64gather_epi64(eight, (__mmask8)~some, eight, w, 8);
    __m512 s = _mm512_mask_i32gather_ps(_mm512_set1_ps(2), some, many, f + n, 4);
    _mm512_mask_i32scatter_pd(o, (__mmask8)(some >> 3), half, d, 8); _mm512_mask_i32scatter_ps(f, some ^ 9, many, s, 4);
    _mm512_mask_i64scatter_epi32(q, (__mmask8)(some >> 1), eight, half, 4);
    _mm256_mask_i64scatter_epi64(w, (__mmask8)some & 15, _mm512_castsi512_si256(eight), _mm512_castsi512_si256(l), 8);
    _mm_mask_i32scatter_ps(f, 5, _mm512_castsi512_si128(many), _mm512_castps512_ps128(s), 4);
    } return (long)o[4] + (long)f[9] + w[8] + q[30]; }
""",
    "wide-masked": r"""
#include <immintrin.h>
static double x[600], y[600]; static char c[700]; static int p[600], k[600];
static void prepare(void) { for (int i = 0; i < 600; i++) { x[i] = rand() %% 7 - 3; c[i] = rand(); p[i] = rand(); k[i] = -i; } }
NOINLINE long hot(long n) { int *to = k; for (int i = 0; i < 512; i += 64) { __mmask64 some = (__mmask64)rand() * 2654435761u + n;
    __m512i bytes = _mm512_maskz_loadu_epi8(some, c + i); _mm512_mask_storeu_epi8(c + i + 5, some >> 9, bytes);
    __m512d d = _mm512_mask_loadu_pd(_mm512_set1_pd(n), (__mmask8)some, x + i);
    d = _mm512_mask_add_pd(d, (__mmask8)(some >> 8), d, _mm512_loadu_pd(x + i + 9));
    d = _mm512_mask_mul_pd(d, (__mmask8)(some >> 7), d, _mm512_set1_pd(x[i])); _mm512_mask_storeu_pd(y + i, (__mmask8)(some >> 16), d);
    __mmask16 few = _mm512_mask_cmpgt_epi32_mask((__mmask16)some, _mm512_loadu_si512(p + i), _mm512_setzero_si512());
    _mm512_mask_compressstoreu_epi32(to, few, bytes); to += __builtin_popcount(few);
    d = _mm512_maskz_expandloadu_pd((__mmask8)few, x + i + 1); _mm512_storeu_pd(y + i + 3, d);
    _mm256_mask_cvtepi32_storeu_epi8(c + i, (__mmask8)few, _mm512_castsi512_si256(bytes)); } return c[77] + p[9] + (long)y[20]; }
""",
}  # fmt: skip


_built: dict[tuple[str, tuple[str, ...]], bytes] = {}


def build(folder: Path, name: str, *flags: str) -> Path:
    """The program ``name``, compiled; by the tests of one process once with the same flags, unless it names its source."""
    source, program = folder / f"{name}.c", folder / name
    source.write_text(
        MAIN.replace("%s", "\0", 1).replace("%%", "%").replace("\0", (PROGRAMS | WIDE_PROGRAMS)[name].replace("%%", "%"))
    )
    if (known := _built.get((name, flags))) is not None:
        program.write_bytes(known)
        program.chmod(0o755)
        return program
    subprocess.run(["gcc", "-w", *flags, "-o", str(program), str(source)], check=True)
    if not any(flag.startswith("-g") for flag in flags):
        _built[name, flags] = program.read_bytes()
    return program


def region_of(
    program: Path, base: int, symbol: str = "hot", callees: tuple[str, ...] = ("walk", "up", "down", "fill")
) -> Region:
    """The function with its ``.cold`` and ``.part`` pieces, and those ``callees`` that exist, at load base ``base``."""
    with program.open("rb") as file:
        elf = ELFFile(file)
        bias = base if elf["e_type"] == "ET_DYN" else 0
        code: dict[str, CodeRange] = {}
        table = elf.get_section_by_name(".symtab")
        assert isinstance(table, SymbolTableSection)
        for entry in table.iter_symbols():
            if entry["st_info"]["type"] == "STT_FUNC" and entry["st_size"] and isinstance(entry["st_shndx"], int):
                section = elf.get_section(entry["st_shndx"])
                at = entry["st_value"] - section["sh_addr"]
                code[entry.name] = CodeRange(entry["st_value"] + bias, section.data()[at : at + entry["st_size"]])

    def one(name: str, below: tuple[Region, ...]) -> Region:
        ranges = tuple(part for label, part in code.items() if label == name or label.startswith(f"{name}."))
        return Region(name, "function", code[name].start, ranges, str(program), bias, below)

    return one(symbol, tuple(one(name, ()) for name in callees if name in code))
