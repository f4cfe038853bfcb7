/* Calls of several kinds; the first argument says how they differ. SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct cell { double a, b, c, d, rest[12]; };
enum { CELLS = 200000, CALLS = 240 };

/* Even calls use c and d, odd ones a and b. */
__attribute__((noinline)) void fields(struct cell *cells, long n, int odd)
{
    if (odd)
        for (long i = 0; i < n; i++)
            cells[i].a += 0.5 * cells[i].b;
    else
        for (long i = 0; i < n; i++)
            cells[i].c = 0.75 * cells[i].c + cells[i].d;
}

/* The finest of three levels of one array, then the coarser ones. */
__attribute__((noinline)) void levels(struct cell *cells, long n)
{
    for (long i = 0; i < n; i++)
        cells[i].c += 0.25 * cells[i].a;
}

/* Even calls use another array than odd ones: one that is allocated at the same place, or (apart) at another one. */
__attribute__((noinline)) void arrays(struct cell *cells, long n)
{
    for (long i = 0; i < n; i++)
        cells[i].a += 0.5 * cells[i].b;
}

__attribute__((noinline)) void apart(struct cell *cells, long n)
{
    for (long i = 0; i < n; i++)
        cells[i].a += 0.5 * cells[i].b;
}

/* Even calls work on a block of twice the size, which is allocated where that of the odd ones was freed. */
__attribute__((noinline)) void again(struct cell *cells, long n, int sweeps)
{
    for (int sweep = 0; sweep < sweeps; sweep++)
        for (long i = 0; i < n; i++)
            cells[i].a += 0.5 * cells[i].b;
}

static void fill(struct cell *cells, long n)
{
    for (long k = 0; k < n; k++)
        cells[k].a = cells[k].b = cells[k].c = cells[k].d = (double)(k % 100) / 100.0;
}

static struct cell *fresh(long n)
{
    struct cell *cells = calloc((size_t)n, sizeof *cells);
    fill(cells, n);
    return cells;
}

static double renewed(long n, int sweeps)
{
    struct cell *cells = fresh(n);
    again(cells, n, sweeps);
    double sum = cells[n - 1].a;
    free(cells);
    return sum;
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "fields";
    struct cell *cells = fresh(CELLS), *others = fresh(CELLS / 2);
    struct cell *alone = calloc(CELLS / 2, sizeof *alone);
    double sum = 0.0;
    fill(alone, CELLS / 2);
    for (int call = 1; call <= CALLS; call++)
        if (!strcmp(how, "fields"))
            fields(cells, CELLS, call % 2);
        else if (!strcmp(how, "levels"))
            levels(cells, CELLS >> (call - 1) % 3);
        else if (!strcmp(how, "again"))
            sum += renewed(call % 2 ? CELLS / 4 : CELLS / 2, call % 2 ? 8 : 1);
        else if (!strcmp(how, "apart"))
            apart(call % 2 ? cells : alone, call % 2 ? CELLS : CELLS / 2);
        else
            arrays(call % 2 ? cells : others, call % 2 ? CELLS : CELLS / 2);
    for (int k = 0; k < CELLS; k++)
        sum += cells[k].a + cells[k].c + others[k / 2].a + alone[k / 2].a;
    printf("%.17g\n", sum);
}
