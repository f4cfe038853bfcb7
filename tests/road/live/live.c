/* Hotspots over records, for trials in the running program: the first argument says which. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
struct record { double a, b, c, d, e, f, g, h; };
enum { COUNT = 60000, CALLS = 90 };
__attribute__((noinline)) double gather(const struct record *p, const int *at, long n)
{
    double sum = 0;
    for (long i = 0; i < n; i++)
        sum += p[at[i]].c;
    return sum;
}
__attribute__((noinline)) void advance(struct record *p, long n, double step)
{
    for (long i = 0; i < n; i++)
        p[i].c += p[i].f * step;
}
__attribute__((noinline)) double pick(const struct record *p, const int *at, long n)
{
    int found[64]; /* in the call's own frame, which stays memory */
    long count = 0;
    double sum = 0;
    for (long i = 0; i < n; i++)
        if (p[at[i]].c > 2)
            found[count++] = at[i];
    for (long i = 0; i < count; i++)
        sum += p[found[count - 1 - i]].f;
    return sum;
}
int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    struct record *p = calloc(COUNT, sizeof *p);
    int *at = malloc(COUNT * sizeof *at);
    double total = 0;
    for (long i = 0; i < COUNT; i++) {
        at[i] = (int)(i * 7919 % COUNT);
        p[i].c = (double)(i % 7);
        p[i].f = (double)(i % 5);
    }
    for (int k = 0; k < CALLS; k++) {
        if (!strcmp(what, "gather"))
            total += gather(p, at, COUNT) * (k % 3);
        if (!strcmp(what, "advance")) {
            advance(p, COUNT, 0.25);
            total += p[k].c;
        }
        for (long i = 0; i < COUNT && !strcmp(what, "short"); i += 40)
            total += gather(p, at + i, 40) * (k % 3);
        for (long i = 0; i < COUNT && !strcmp(what, "frame"); i += 60)
            total += pick(p, at + i, 60) * (k % 3);
        if (!strcmp(what, "loop")) {
            double sum = 0;
            for (long i = 0; i < COUNT; i++)
                sum += p[at[i]].c * p[at[i]].f;
            total += sum;
            p[k].c += 1; /* the region reads, the program writes */
        }
    }
    printf("%.17g\n", total);
    return 5;
}
