/* Kernels of many shapes for tests/mockup/lift/test_differential.py. Every kernel has the same signature:
   a, b, c: arrays of doubles; p: array of ints below n; n: their length (at least 32); w: work area of the same size. */
#include <math.h>
#include <stddef.h>
#include <stdint.h>

typedef struct { double x, y, z; int kind; float w; } rec;
#define K(name) double name(double *a, double *b, double *w, int *p, long n)

K(daxpy) { for (long i = 0; i < n; i++) w[i] += 1.5 * a[i]; return 0; }
K(dot) { double s = 0; for (int i = 0; i < (int)n; i++) s += a[i] * b[i]; return s; }
K(dot_unsigned) { double s = 0; for (unsigned i = 0; i < (unsigned)n; i++) s += a[i] * b[i]; return s; }
K(dot_size) { double s = 0; for (size_t i = 0; i != (size_t)n; i += 1) s += a[i] * b[i]; return s; }
K(stencil3) { for (long i = 1; i < n - 1; i++) w[i] = a[i - 1] + 2 * a[i] + a[i + 1]; return w[1]; }
K(stencil2d) {
    long m = 8, r = n / 8;
    for (long i = 1; i < r - 1; i++)
        for (long j = 1; j < m - 1; j++)
            w[i * m + j] = 0.25 * (a[(i - 1) * m + j] + a[(i + 1) * m + j] + a[i * m + j - 1] + a[i * m + j + 1]);
    return 0;
}
K(stencil_int) {
    int m = (int)(n / 5), r = 5;
    for (int i = 1; i < r - 1; i++)
        for (int j = 1; j < m - 1; j++)
            w[i * m + j] = a[(i - 1) * m + j] - a[(i + 1) * m + j];
    return 0;
}
K(gather) { for (long i = 0; i < n; i++) w[i] = a[p[i]]; return 0; }
K(scatter) { for (int i = 0; i < n; i++) w[p[i]] += b[i]; return 0; }
K(conditional) { for (long i = 0; i < n; i++) if (a[i] > 0.5) w[i] = b[i]; else w[i] -= a[i]; return 0; }
K(clamp) { for (long i = 0; i < n; i++) w[i] = a[i] < 0.25 ? 0.25 : a[i] > 0.75 ? 0.75 : a[i]; return 0; }
K(early) { for (long i = 0; i < n; i++) { if (a[i] > 0.95) return (double)i; w[i] = a[i]; } return -1; }
K(early_break) { long i; for (i = 0; i < n; i++) { w[i] = b[i]; if (b[i] * a[i] > 0.9) break; } return w[i < n ? i : 0] + (double)i; }
K(while_loop) { double t = 1; long k = 0; while (t > 1e-3 && k < n) { t *= a[k] + 0.1; k++; } w[0] = t; return (double)k; }
K(triangular) { for (long i = 0; i < n / 4; i++) for (long j = 0; j <= i; j++) w[i] += a[j] * b[i]; return 0; }
K(triangular_down) { for (int i = (int)n / 4; i > 0; i--) for (int j = i; j < (int)n / 4; j++) w[j] -= a[i] * b[j]; return 0; }
K(backward) { for (long i = n - 1; i >= 0; i--) w[i] = a[i] - b[n - 1 - i]; return 0; }
K(step3) { double s = 0; for (long i = 0; i < n; i += 3) s += a[i]; return s; }
K(step3_int) { double s = 0; for (int i = 1; i <= (int)n - 2; i += 3) s += a[i] - b[i + 1]; return s; }
K(unrolled) {
    double s = 0, t = 0; long i;
    for (i = 0; i + 4 <= n; i += 4) { s += a[i] * b[i] + a[i + 1] * b[i + 1]; t += a[i + 2] * b[i + 2] + a[i + 3] * b[i + 3]; }
    for (; i < n; i++) s += a[i] * b[i];
    return s + t;
}
K(records) { rec *r = (rec *)w; for (long i = 0; i < n / 6; i++) { r[i].x += a[i] * r[i].z; r[i].w = (float)b[i]; } return 0; }
K(record_kinds) { rec *r = (rec *)w; double s = 0; for (long i = 0; i < n / 6; i++) if (p[i] % 3 == 1) s += r[i].y; else r[i].kind = p[i]; return s; }
K(floats) { float *f = (float *)w, *g = (float *)a; float s = 0; for (long i = 0; i < n; i++) { f[i] = g[i] * 2.5f + (float)p[i]; s += f[i]; } return s; }
K(float_swap) { float *f = (float *)w; for (long i = 0; i < n; i++) { float t = f[2 * i]; f[2 * i] = f[2 * i + 1]; f[2 * i + 1] = t; } return 0; }
K(ints) { int *q = (int *)w; int s = 0; for (long i = 0; i < n; i++) { q[i] = p[i] * 3 - (int)i; s ^= q[i]; } return s; }
K(hash) { uint64_t h = 14695981039346656037u; for (long i = 0; i < n; i++) { h ^= (uint64_t)p[i]; h *= 1099511628211u; } return (double)(h >> 12); }
K(bytes) { unsigned char *q = (unsigned char *)w; for (long i = 0; i < n; i++) q[i] = (unsigned char)(p[i] + q[i] / 2); return 0; }
K(shorts) { short *q = (short *)w; for (long i = 0; i < n; i++) q[i] = (short)(q[i] + p[i] * 2); return 0; }
K(roots) { double s = 0; for (long i = 0; i < n; i++) { w[i] = sqrt(a[i]); s += fabs(a[i] - b[i]); } return s; }
K(exps) { for (long i = 0; i < n; i++) w[i] = exp(-a[i]) + log(1 + b[i]); return pow(a[0], b[0]); }
K(switched) {
    for (long i = 0; i < n; i++)
        switch (p[i] % 7) {
            case 0: w[i] = a[i]; break;
            case 1: w[i] = b[i]; break;
            case 2: w[i] = a[i] + b[i]; break;
            case 3: w[i] = a[i] * b[i]; break;
            case 4: w[i] = a[i] - b[i]; break;
            case 5: w[i] = a[i] / (1 + b[i]); break;
            default: w[i] = 0;
        }
    return 0;
}
K(maximum) { double m = -1e300; long at = -1; for (long i = 0; i < n; i++) if (a[i] > m) { m = a[i]; at = i; } return m + (double)at; }
K(minimum) { double m = a[0]; for (long i = 1; i < n; i++) m = b[i] < m ? b[i] : m; return m; }
K(matmul) {
    long m = 6;
    for (long i = 0; i < m; i++)
        for (long j = 0; j < m; j++) { double s = 0; for (long k = 0; k < m; k++) s += a[i * m + k] * b[k * m + j]; w[i * m + j] = s; }
    return 0;
}
K(matmul_pitch) {
    int m = (int)(n / 8);
    for (int i = 0; i < 7; i++)
        for (int j = 0; j < m; j++) { double s = w[i * m + j]; for (int k = 0; k < 5; k++) s += a[i * m + k] * b[k * m + j]; w[i * m + j] = s; }
    return 0;
}
K(complex_multiply) {
    for (long i = 0; i < n / 2; i++) {
        double re = a[2 * i] * b[2 * i] - a[2 * i + 1] * b[2 * i + 1], im = a[2 * i] * b[2 * i + 1] + a[2 * i + 1] * b[2 * i];
        w[2 * i] = re; w[2 * i + 1] = im;
    }
    return 0;
}
K(prefix) { double s = 0; for (long i = 0; i < n; i++) { s += a[i]; w[i] = s; } return s; }
K(recurrence) { for (long i = 2; i < n; i++) w[i] = w[i - 1] * a[i] + w[i - 2]; return w[n - 1]; }
K(list_walk) { double s = 0; int k = p[0]; for (int steps = 0; steps < (int)n; steps++) { s += a[k]; k = p[k]; } return s; }
K(count) { int c = 0; for (long i = 0; i < n; i++) c += a[i] > b[i]; return c; }
K(copy) { for (long i = 0; i < n; i++) w[i] = a[i]; return 0; }
K(zero) { for (long i = 0; i < n; i++) w[i] = 0; return 0; }
K(reverse) { for (long i = 0; i < n / 2; i++) { double t = w[i]; w[i] = w[n - 1 - i]; w[n - 1 - i] = t; } return 0; }
K(sort) {
    for (long i = 1; i < 24; i++) { double v = w[i]; long j = i; while (j > 0 && w[j - 1] > v) { w[j] = w[j - 1]; j--; } w[j] = v; }
    return 0;
}
K(binary_search) {
    double found = 0;
    for (long q = 0; q < 16; q++) { long lo = 0, hi = n; while (lo < hi) { long mid = (lo + hi) / 2; if ((double)mid < a[q] * (double)n) lo = mid + 1; else hi = mid; } found += (double)lo; }
    return found;
}
K(bits) { uint64_t s = 0; for (long i = 0; i < n; i++) { uint32_t v = (uint32_t)p[i] * 2654435761u; s += (v >> 7) ^ (v << 3) ^ (uint64_t)(v % 10u); } return (double)s; }
K(convert) { int *q = (int *)w; for (long i = 0; i < n; i++) q[i] = (int)(a[i] * 1000) + (int)(float)b[i]; return 0; }
K(two_exits) { for (long i = 0; i < n; i++) for (long j = 0; j < 8; j++) { w[i] += a[i] * b[j]; if (w[i] > 2.5) return (double)(i * 8 + j); } return w[0]; }
K(local_array) { double t[8]; for (int i = 0; i < 8; i++) t[i] = a[i]; for (long i = 0; i < n; i++) w[i] += t[p[i] & 7]; return t[3]; }
K(spills) {
    double s0 = 0, s1 = 0, s2 = 0, s3 = 0, s4 = 0, s5 = 0, s6 = 0, s7 = 0, s8 = 0, s9 = 0, sa = 0, sb = 0, sc = 0, sd = 0, se = 0, sf = 0, sg = 0, sh = 0;
    for (long i = 0; i < n - 18; i++) {
        double v = b[i];
        s0 += a[i] * v; s1 += a[i + 1] * v; s2 += a[i + 2] * v; s3 += a[i + 3] * v; s4 += a[i + 4] * v; s5 += a[i + 5] * v;
        s6 += a[i + 6] * v; s7 += a[i + 7] * v; s8 += a[i + 8] * v; s9 += a[i + 9] * v; sa += a[i + 10] * v; sb += a[i + 11] * v;
        sc += a[i + 12] * v; sd += a[i + 13] * v; se += a[i + 14] * v; sf += a[i + 15] * v; sg += a[i + 16] * v; sh += a[i + 17] * v;
    }
    w[0] = s0 + s1 * s2; w[1] = s3 + s4 * s5; w[2] = s6 + s7 * s8; w[3] = s9 + sa * sb; w[4] = sc + sd * se; w[5] = sf + sg * sh;
    return s0;
}
static __attribute__((noinline)) double helper(double x, double y) { double s = 0; for (int i = 0; i < 3; i++) s += x * y + i; return s; }
K(calls_helper) { for (long i = 0; i < n; i++) w[i] = helper(a[i], b[i]); return 0; }
typedef struct { double first, second; } two;
static __attribute__((noipa)) two helper_two(const double *x) { two t = {x[0], x[1]}; return t; }
K(uses_one_of_two) { two t = helper_two(a), u = helper_two(b); w[0] = t.first + t.second * u.first; return 0; }
K(nans) { for (long i = 0; i < n; i++) { double v = (a[i] - a[i]) / (b[i] - b[i]); w[i] = v < 1 || v >= 1 ? 1 : v == v ? 2 : 3; } return 0; }
K(string_moves) {
    const double *from = a;
    double *to = w;
    for (long i = 0; i < n; i++)
        __asm__ volatile("movsq" : "+D"(to), "+S"(from) : : "memory");
    return (double)(from - a + (to - w)) + w[1];
}
K(merged_compares) { /* one branch for the compares of two paths */
    long s = 0;
    for (long i = 0; i < n; i++) {
        long more = 0;
        __asm__("cmpl $5, %k1\n jl 1f\n cmpq %2, %3\n jmp 2f\n 1: testl $1, %k1\n 2: jle 3f\n movq $1, %0\n 3:"
                : "+r"(more) : "r"(p[i]), "r"(i), "r"(n / 2) : "cc");
        s += more * (i + 1);
    }
    return (double)s;
}
K(compare_before_the_loop) { /* and at its end: its first branch reads both */
    long left = n - p[0], s = 0;
    __asm__("cmpq $3, %0\n 1: jle 2f\n addq %0, %1\n subq $2, %0\n cmpq $5, %0\n jmp 1b\n 2:" : "+r"(left), "+r"(s) : : "cc");
    return (double)(s + left);
}
