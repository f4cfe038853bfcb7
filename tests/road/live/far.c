/* A hotspot whose records are reached through a pointer that it loads: of some late calls they are others. */
#include <stdio.h>
#include <stdlib.h>
struct record { double a, b, c, d, e, f, g, h; };
struct set { struct record *records; const int *at; long n; };
enum { COUNT = 60000, CALLS = 90, FAR_FROM = 40, FAR_EVERY = 10 };
__attribute__((noinline)) double gather(const struct set *s)
{
    double sum = 0;
    for (long i = 0; i < s->n; i++)
        sum += s->records[s->at[i]].c;
    return sum;
}
int main(void)
{
    struct record *near = calloc(COUNT, sizeof *near), *far = calloc(COUNT, sizeof *far);
    int *at = malloc(COUNT * sizeof *at);
    double total = 0;
    for (long i = 0; i < COUNT; i++) {
        at[i] = (int)(i * 7919 % COUNT);
        near[i].c = (double)(i % 7);
        far[i].c = (double)(i % 5);
    }
    struct set s = {near, at, COUNT};
    for (int k = 1; k <= CALLS; k++) {
        s.records = k >= FAR_FROM && k % FAR_EVERY == 0 ? far : near;
        total += gather(&s) * (k % 3);
    }
    printf("%.17g\n", total);
    return 5;
}
