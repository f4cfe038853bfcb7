"""A program whose traced call allocates, frees and moves heap blocks."""

from __future__ import annotations

BLOCKS_OF_A_CALL = r"""
#include <stdlib.h>
static void *keep, *old, *grown, *stays;
__attribute__((noipa)) long hot(long n) { void *brief = malloc(500); *(volatile char *)brief = 1; free(brief);
    keep = malloc(777); free(old); old = NULL; grown = realloc(grown, 300000 + n); *(volatile char *)stays = 2;
    return keep != NULL; }
int main(void) { old = malloc(333); grown = malloc(64); stays = malloc(99); return hot(4) + hot(5) == 0; }
"""
