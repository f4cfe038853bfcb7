/* kmeans_vectors.c in blocks of four, which fill a register of SSE. gcc takes vectors of eight apart where there are none so wide.
 * SPDX-License-Identifier: MIT */
#define LANES 4
#include "kmeans_vectors.c"
