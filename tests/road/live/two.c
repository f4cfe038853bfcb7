/* Two regions over one array of records, each of which writes what the other one reads. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
struct record { double a, b, c, d, e, f, g, h; };
enum { COUNT = 60000, CALLS = 90 };
__attribute__((noipa)) void push(struct record *p, long n, double by)
{
    for (int pass = 0; pass < 4; pass++)
        for (long i = 0; i < n; i++)
            p[i].c += p[i].f * by;
}
__attribute__((noipa)) double pull(struct record *p, long n, double by)
{
    double sum = 0;
    for (int pass = 0; pass < 4; pass++)
        for (long i = 0; i < n; i++) {
            p[i].f = p[i].f * 0.5 + p[i].c * by;
            sum += p[i].f;
        }
    return sum;
}
int main(int argc, char **argv)
{
    const int between = argc > 1 && !strcmp(argv[1], "between");
    struct record *p = calloc(COUNT, sizeof *p);
    double total = 0;
    for (long i = 0; i < COUNT; i++) {
        p[i].c = (double)(i % 7);
        p[i].f = (double)(i % 5);
    }
    for (int k = 0; k < CALLS; k++) {
        push(p, COUNT, 0.25);
        if (between)
            p[k].f += 1;
        total += pull(p, COUNT, 0.125);
    }
    printf("%.17g\n", total);
    return 5;
}
