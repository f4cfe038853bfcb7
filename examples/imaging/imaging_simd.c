/* imaging_soa.c with each line of voxels written for SIMD, but for the sums, whose order matters.
 * SPDX-License-Identifier: MIT */
#define INNER_VOXELS(n)                  \
    for (long z = 1; z < (n)-1; z++)     \
        for (long y = 1; y < (n)-1; y++) \
            _Pragma("omp simd") for (long i = (z * (n) + y) * (n) + 1; i < (z * (n) + y + 1) * (n)-1; i++)

#include "imaging_soa.c"
