/* Functions that call others which are not lifted with them, for tests/mockup/lift/test_opaque.py. Pointers first, then sizes. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef double (*unary)(double);
typedef struct { double re, im; } pair;
static __thread double last;

__attribute__((noinline)) double plain(double x) { return x * 1.25 + 0.5; }
__attribute__((noinline)) int integer(int a, long b) { return a * 3 + (int)(b & 7); }
__attribute__((noinline)) pair two(double x) { pair p = {x, 1 - x}; return p; }
__attribute__((noinline)) void by_address(double *x, const int *k) { *x = *x * 0.5 + *k; }
__attribute__((noinline)) double many(int a, int b, int c, int d, int e, int f, int g, double h, int i, double *j)
{
    return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + h + i + *j;
}
__attribute__((noinline)) float single(float x, int k) { return x * (float)k; }
double halved(double x) { return x / 2; }

#define N(n) ((n) & 15)
double each(double *a, long n) { double s = 0; for (long i = 0; i < N(n); i++) s += plain(a[i]); return s; }
double ints(double *a, int *p, long n) { double s = 0; for (int i = 0; i < N(n); i++) s += a[i] * integer(p[i] & 255, i); return s; }
double both(double *a, long n) { double s = 0; for (long i = 0; i < N(n); i++) { pair p = two(a[i]); s += p.re * p.im; } return s; }
double local(double *a, long n) { double x = 1; for (int i = 0; i < N(n); i++) { by_address(&x, &i); a[i] += x; } return x; }
double stack_arguments(double *a, long n)
{
    double s = 0;
    for (int i = 0; i < N(n); i++)
        s += many(i, 1, 2, (int)n & 3, 4, i + 1, 6, a[i], 8, &a[i + 1]);
    return s;
}
double floats(float *a, long n) { double s = 0; for (int i = 0; i < N(n); i++) s += single(a[i], i); return s; }
double through_pointer(double *a, long n)
{
    unary f = n & 1 ? halved : plain;
    double s = 0;
    for (int i = 0; i < N(n); i++)
        s += f(a[i]);
    return s;
}
double tail(double *a, long n) { double s = 0; for (int i = 0; i < N(n); i++) s += a[i]; a[0] = s; return plain(s); }
double on_stack(long a, long b, long c, long d, long e, long f, double *g, long h)
{
    double s = 0;
    for (int i = 0; i < N(h); i++)
        s += g[i] * (double)((a + b + c + d + e + f) & 3);
    return s;
}
double passes_on(double *a, long n) { a[1] = plain(a[0]); return on_stack(n, 1, 2, 3, 4, 5, a, n + 2); }
double copies(double *a, double *b, long n)
{
    memcpy(b, a, (size_t)N(n) * sizeof *a);
    for (int i = 0; i < N(n); i++)
        b[i] += a[i];
    return b[0];
}
double thread_local(double *a, long n) { for (int i = 0; i < N(n); i++) last = a[i] * 2; return last; }
double protected_array(double *a, long n)
{
    double buffer[16];
    for (int i = 0; i < N(n); i++)
        buffer[i] = a[i] * 3;
    by_address(&buffer[0], &(int){2});
    double s = 0;
    for (int i = 0; i < N(n); i++)
        s += buffer[i];
    return s;
}
double recursive(double *a, long n) { return N(n) == 0 ? 1 : a[0] + 0.5 * recursive(a + 1, N(n) - 1); }
double error_path(double *a, long n)
{
    double s = 0;
    for (int i = 0; i < N(n); i++) {
        if (a[i] > 1e300)
            abort();
        s += a[i];
    }
    return s;
}
double nested(double *a, long n)
{
    double s = 0;
    for (int i = 0; i < N(n); i++) {
        double t = plain(a[i]);
        for (int j = 0; j < i; j++)
            t += a[j] * plain((double)j);
        s += i & 1 ? t : sqrt(fabs(t));
    }
    return s;
}

/* Relies on registers that its callee happens not to change, as gcc does within a file (-fipa-ra). */
double keeps(double *a, long n);
__asm__(".text\n.globl keeps\n.type keeps, @function\nkeeps:\n"
        "pushq %rbx\nmovq %rdi, %rbx\nmovl $5, %r10d\nmovl $7, %ecx\nmovsd (%rdi), %xmm9\nmovsd 8(%rdi), %xmm0\n"
        "call .Lsquare\ncvtsi2sdq %r10, %xmm1\naddsd %xmm1, %xmm0\naddsd %xmm9, %xmm0\ncvtsi2sdl %ecx, %xmm1\n"
        "mulsd %xmm1, %xmm0\nmovsd %xmm0, 16(%rbx)\npopq %rbx\nret\n.size keeps, .-keeps\n"
        ".type .Lsquare, @function\n.Lsquare:\nmulsd %xmm0, %xmm0\nmovl $3, %ecx\nret\n");

__attribute__((noreturn, noinline)) void gives_up(double x) { abort(); (void)x; }
double tail_or_abort(double *a, long n)
{
    double s = 0;
    for (int i = 0; i < N(n); i++)
        s += a[i];
    a[0] = s;
    if (s > 1e200)
        gives_up(s);
    return n & 1 ? plain(s) : halved(s);
}

/* A jump table whose bound is that of memory, from which the index is then loaded. */
double chooses(double *a, long n);
__asm__(".text\n.globl chooses\n.type chooses, @function\nchooses:\n"
        "andl $3, %esi\nmovl %esi, 16(%rdi)\ncmpl $2, 16(%rdi)\nmovl $1, 24(%rdi)\nja 3f\nmovl 16(%rdi), %eax\n"
        "leaq 9f(%rip), %rdx\nmovslq (%rdx,%rax,4), %rax\naddq %rdx, %rax\njmp *%rax\n"
        "0: movsd (%rdi), %xmm0\nret\n1: movsd 8(%rdi), %xmm0\nret\n2: movsd 32(%rdi), %xmm0\naddsd (%rdi), %xmm0\nret\n"
        "3: movsd 8(%rdi), %xmm0\nmulsd %xmm0, %xmm0\nret\n.size chooses, .-chooses\n"
        ".section .rodata\n.p2align 2\n9: .long 0b-9b, 1b-9b, 2b-9b\n.text\n");

/* Reads a place of its frame that it never writes. */
double unwritten(double *a, long n);
__asm__(".text\n.globl unwritten\n.type unwritten, @function\nunwritten:\n"
        "subq $24, %rsp\nmovsd (%rdi), %xmm0\ntestb $1, %sil\nje 1f\naddsd 8(%rsp), %xmm0\n1: movsd %xmm0, 8(%rdi)\n"
        "addq $24, %rsp\nret\n.size unwritten, .-unwritten\n");
