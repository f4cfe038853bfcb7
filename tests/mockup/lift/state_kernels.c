/* Functions that do something only where their arguments are of the right kinds, for tests/mockup/lift/test_state.py. */
#include <stddef.h>

struct cell { double value; int kind; struct cell *next; };
struct table { long unused; int count; float *values; const int *index; };

double chain(const struct cell *c)
{
    double s = 0;
    for (int k = 0; c && k < 50; c = c->next, k++)
        s += c->kind == 1 ? c->value : 2 * c->value;
    return s;
}
float indexed(const struct table *t)
{
    float s = 0;
    for (int k = 0; k < t->count && k < 50; k++)
        s += t->values[t->index[k] & 63];
    return s;
}
double records(const struct cell *c, int n)
{
    double s = 0;
    for (int k = 0; k < n && k < 50; k++)
        s += c[k].value * c[k].kind;
    return s;
}
double applied(double (*f)(double), double *x, const int *n)
{
    for (int k = 0; k < *n && k < 50; k++)
        x[k] = f(x[k]) + 1;
    return x[0];
}
__attribute__((noinline)) double inner(const double *x, const int *n, const char *mode)
{
    double s = 0;
    for (int k = 0; k < *n && k < 50; k++)
        s += *mode == 'T' ? x[k] * x[k] : x[k];
    return s;
}
/* What its last arguments are is only seen in the function it calls; they lie on the stack. */
double outer(const int *a, const int *b, const int *c, const int *d, const int *e, const int *f, const double *x, const int *n,
             const char *mode)
{
    double s = 0;
    for (int k = 0; k < (*a & 3) + 1; k++)
        s += inner(x, n, mode) + *b + *c + *d + *e + *f;
    return s;
}
double coded(int order, const double *x, int n)
{
    double s = 0;
    if (order != 101 && order != 202)
        return -1;
    for (int k = 0; k < n && k < 50; k++)
        s += order == 101 ? x[k] : -x[k];
    return s;
}
