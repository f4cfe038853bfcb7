# ruff: noqa: E501  (C source, a line a statement list)
"""Kernels of loops, traced under Valgrind."""

from __future__ import annotations

from pathlib import Path

from layout_advise.tracer.backends.protocol import Rerun
from layout_advise.tracer.backends.tool.run import ToolRun
from layout_advise.tracer.backends.valgrind.run import run_tool
from layout_advise.tracer.process.patching import Entry
from layout_advise.tracer.program.binary import ElfBinary

KERNELS = {
    # rows of a nest around rows; 4-D, so that the nests end and begin again
    "stencil": "double a[2][9][9][14][14]; void hot(long n) { for (long i = 1; i < n - 16; i++) for (int j = 1; j < 8; j++) for (int k = 1; k < 13; k++) for (int l = 1; l < 13; l++) a[1][i][j][k][l] = a[0][i][j][k][l] + a[0][i - 1][j][k][l] + a[0][i][j + 1][k][l] + a[0][i][j][k - 1][l] + a[0][i][j][k][l + 1]; }",
    "triangles": "double a[60][60]; void hot(long n) { for (long k = 0; k < n + 30; k++) for (long i = k + 1; i < 54; i++) { double f = a[i][k] /= a[k][k] + 2; for (long j = k + 1; j < 54; j++) a[i][j] -= f * a[k][j]; } }",
    "two loops in one": "long a[90][64], b[90][64]; void hot(long n) { for (long r = 0; r < 3; r++) for (long i = 0; i < n + 60; i++) { for (long j = 0; j < 40; j++) a[i][j] += r; a[i][63]++; for (long j = 60; j > 7; j -= 2) b[i][j] ^= a[i][5]; } }",
    "one function from two places": "long a[64][64]; static void __attribute__((noipa)) row(long *p, long n) { for (long j = 0; j < n; j++) p[j] += j; } void hot(long n) { for (long i = 0; i < 60; i++) { row(a[i], n); row(a[63 - i], 30); } }",
    "a step here, a step there": "long a[400], b[180][16]; static void __attribute__((noipa)) step(long *p) { *p += 1; } void hot(long n) { for (long i = 0; i < 180; i++) { step(a + i); for (long j = 0; j < 12; j++) b[i][j] += n; step(a + 399 - i); } }",
    "rows that grow to a size": "long a[80][80]; void hot(long n) { for (long r = 0; r < 2; r++) for (long i = 0; i < 80; i++) for (long j = 0, m = i < n ? i : n; j < m; j++) a[i][j] += a[j][i]; }",
    "an index array": "long a[4000], at[64][32]; void hot(long n) { for (long i = 0; i < 64; i++) for (long j = 0; j < 32; j++) at[i][j] = (i * j * j * 17 + n) % 4000; for (long i = 0; i < 64; i++) for (long j = 0; j < 32; j++) a[at[i][j]] += at[i][j]; }",
    "one turn that differs": "long a[300][20]; void hot(long n) { for (long i = 0; i < 300; i++) for (long j = 0; j < 16; j++) a[i == 177 ? 3 : i][j] += n; }",
    "four at a time": "double a[90][40][4]; void hot(long n) { for (long i = 0; i < 90; i++) for (long j = 0; j < 40 - (i % 7 == 3); j++) { double s = 0; for (volatile int k = 0; k < 4; k++) s += a[i][j][k]; a[i][j][0] = s + n; } }",
    "masked": "#include <immintrin.h>\nint a[80][640]; volatile int some[8] = {-1, 0, -1, -1, 0, 0, -1, 0}; void hot(long n) { for (long i = 0; i < 80; i++) for (long j = 0; j < 160; j += 8) _mm256_maskstore_epi32(a[i] + j, _mm256_loadu_si256((void *)some), _mm256_set1_epi32(n)); }",
}


def traced(program: Path, raw: bool) -> ToolRun:
    function = ElfBinary.open(program).find("hot")
    entry = Entry(program, function.start, ElfBinary.open(program).read(function.start, function.size), "hot")
    return run_tool(Rerun([str(program)], entry, 2, 1 << 40, timeout=60), raw=raw)
