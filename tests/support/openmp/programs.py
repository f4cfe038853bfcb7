# ruff: noqa: E501  (C source, a line a statement list)
"""Small OpenMP programs for tests: a global array ``cells``, and region bodies that update it."""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest

MAIN = r"""
#include <omp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
struct cell { double x, v, mass, charge; };
struct cell cells[4096]; long n = 1000; double sums[64]; long turn;
%s
int main(void) { for (int i = 0; i < 4096; i++) cells[i] = (struct cell){i, 1, 2, 3};
    start(); for (int k = 0; k < 8; k++) { turn = k; other(); hot(0.5); } double t = 0; for (int i = 0; i < 4096; i++) t += cells[i].x;
    printf("%g\n", t); return 0; }
"""
_NOTHING = "static void start(void) {} static void other(void) {}\n"
_STEP = "for (long i = 0; i < n; i++) cells[i].x += dt * cells[i].v;"

PROGRAMS = {
    "static": _NOTHING + f"void hot(double dt) {{\n#pragma omp parallel for schedule(static)\n{_STEP} }}",
    "dynamic": _NOTHING + "void hot(double dt) {\n#pragma omp parallel for schedule(dynamic, 16)\n"
    "for (long i = 0; i < 1000; i++) cells[i].x += dt * cells[i].v; }",
    # 300,000 accesses a call and more: their records take 2.4 MB
    "long": _NOTHING + "void hot(double dt) {\n#pragma omp parallel for schedule(static)\n"
    "for (long i = 0; i < 100000; i++) cells[i % 1000].x += dt * cells[i % 1000].v; }",
    # the body of another region, started by the same function of the runtime, comes before each
    "two": "static void start(void) {} static void other(void) {\n#pragma omp parallel\n"
    f"sums[omp_get_thread_num()]++; }}\nvoid hot(double dt) {{\n#pragma omp parallel for\n{_STEP} }}",
    # from call to call 2, 3, 2, ... threads: some start and end between two calls and in them
    "changing": _NOTHING
    + f"void hot(double dt) {{\n#pragma omp parallel for num_threads(2 + turn % 2) schedule(static)\n{_STEP} }}",
    "nested": _NOTHING + "static void inner(double dt, int depth);\nvoid hot(double dt) { inner(dt, 1); }\n"
    "static __attribute__((noinline)) void inner(double dt, int depth) {\n#pragma omp parallel num_threads(2)\n"
    "{ if (depth) inner(dt, 0); sums[omp_get_thread_num() * 8] += dt; } }",
    # gcc loads the address of the body before the loop in main, and other functions are called in between
    "hoisted": "static void start(void) {} static double t0; static void other(void) { t0 += omp_get_wtime();\n"
    "#pragma omp parallel\nsums[omp_get_thread_num()]++; }\n"
    f"static inline void hot(double dt) {{ for (int again = 0; again < 3; again++) {{ t0 -= omp_get_wtime();\n"
    f"#pragma omp parallel for\n{_STEP} }} }}",
    "task": _NOTHING
    + f"void hot(double dt) {{\n#pragma omp parallel\n#pragma omp single\n#pragma omp task\n{{ {_STEP} }} }}",
    "false": _NOTHING
    + "void hot(double dt) {\n#pragma omp parallel\n{ int t = omp_get_thread_num(), k = omp_get_num_threads();\n"
    "for (long i = t; i < n; i += k) *(volatile double *)&sums[t] += cells[i].x * dt; } }",
    # every thread frees a block that it allocated at the call before, and leaves one behind
    "heap": "static void start(void) {} static void other(void) {} static double *held[8];\n"
    "void hot(double dt) {\n#pragma omp parallel\n{ int t = omp_get_thread_num(); free(held[t]);\n"
    "double *p = held[t] = malloc((100 + t) * sizeof *p);\n#pragma omp for schedule(static)\n"
    "for (long i = 0; i < n; i++) { cells[i].x += dt * cells[i].v; p[i % 100] = dt; } } }",
    # no OpenMP: a thread of its own writes beside the hotspot
    "beside": "static volatile long clock_; static void *tick(void *p) { for (;;) clock_++; return p; }\n"
    "static void start(void) { pthread_t t; pthread_create(&t, NULL, tick, NULL); } static void other(void) {}\n"
    f"__attribute__((noinline)) void hot(double dt) {{ {_STEP} }}",
}


def build(folder: Path, name: str, *flags: str, compiler: str = "gcc") -> Path:
    """Compile one of the programs."""
    source, program = folder / f"{name}.c", folder / name
    source.write_text(MAIN.replace("%s", PROGRAMS[name]))
    subprocess.run([compiler, "-g", *(flags or ("-O2",)), "-fopenmp", "-pthread", "-o", program, source], check=True)
    return program


@cache
def clang_has_openmp() -> bool:
    """Whether clang is here and links programs with its OpenMP runtime."""
    command = ["clang", "-fopenmp", "-x", "c", "-", "-o", os.devnull]
    source = "#include <omp.h>\nint main(void) { return omp_get_level(); }"
    return (
        bool(shutil.which("clang")) and not subprocess.run(command, input=source, capture_output=True, text=True).returncode
    )


needs_libomp = pytest.mark.skipif(not clang_has_openmp(), reason="clang or libomp is not installed")


def with_threads(count: int) -> dict[str, str]:
    """The environment for so many threads."""
    return {**os.environ, "OMP_NUM_THREADS": str(count), "OMP_DYNAMIC": "false"}
