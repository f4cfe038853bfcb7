/* A sparse system on a grid by Cholesky and LU, with CSparse: factor SIDE. */
#include "cs.h"
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    csi side = argc > 1 ? atoi(argv[1]) : 200, n = side * side;
    cs *triplets = cs_spalloc(n, n, 5 * n, 1, 1);
    double *b = malloc((size_t)n * sizeof *b);
    for (csi i = 0; i < n; i++) {
        b[i] = 1 + i % 7;
        cs_entry(triplets, i, i, 4.1);
        if (i % side)
            cs_entry(triplets, i, i - 1, -1), cs_entry(triplets, i - 1, i, -1);
        if (i >= side)
            cs_entry(triplets, i, i - side, -1), cs_entry(triplets, i - side, i, -1);
    }
    cs *a = cs_compress(triplets);
    double sum = 0;
    for (int round = 0; round < 3; round++) {
        if (!(round == 2 ? cs_lusol(2, a, b, 0.1) : cs_cholsol(1, a, b)))
            return 1;
        for (csi i = 0; i < n; i++)
            sum += b[i];
    }
    printf("sum %.9g\n", sum);
    return 0;
}
