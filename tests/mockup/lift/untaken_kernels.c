/* Functions with ways that cannot be lifted, for tests/mockup/lift/test_untaken_ways.py. */
#include <stdlib.h>

extern void elsewhere(double *, long);

double rare(double *a, long n, void (*callback)(double *))
{
    double sum = 0;
    for (long i = 0; i < n; i++) {
        sum += a[i];
        if (a[i] > 1e9) {
            callback(a + i);
            a[i] = 0;
        }
        if (a[i] < -1e9)
            abort();
    }
    return sum;
}

struct item {
    double value;
    double (*how)(double);
};

double twice(double x)
{
    return 2 * x;
}

double half(double x)
{
    return x / 2;
}

double through(const struct item *a, long n)
{
    double sum = 0;
    for (long i = 0; i < n; i++)
        sum += a[i].how(a[i].value);
    return sum;
}

double odd(double *a, long n)
{
    double sum = 0;
    for (long i = 0; i < n; i++) {
        sum += a[i];
        if (a[i] > 1e9)
            __asm__ volatile("cpuid" : : : "rax", "rbx", "rcx", "rdx");
    }
    return sum;
}
