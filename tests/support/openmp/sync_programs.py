# ruff: noqa: E501  (C source, a line a statement list)
"""OpenMP regions whose threads share work, wait for each other and add up: for tests. The body is in ``move``."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from layout_advise.mockup.ir.lifted import Item, Lifted, LiftedLoop
from layout_advise.mockup.lift.lift import lift
from layout_advise.tracer.program.binary import ElfBinary
from layout_advise.tracer.program.openmp_regions import is_region_body

_MAIN = r"""
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
struct body { double x, v; long hits, rest[5]; } *bodies;
long n = SIZE, total, most; double sum, start = 0.7; long per[64];
unsigned long counts[16]; double weights[16];
__attribute__((noinline)) void move(double dt)
{
    long here = 0; double part = start; struct body *own = bodies; (void)own;
    %s
    total += here; sum += part;
}
int main(void)
{
    bodies = calloc(n, sizeof *bodies);
    for (long i = 0; i < n; i++) { bodies[i].v = i %% 97 * 0.1; bodies[i].x = i * 0.3; }
    for (int call = 0; call < 12; call++) move(0.25);
    for (long i = 0; i < n; i++) sum += bodies[i].x + bodies[i].hits;
    printf("%%.17g %%ld %%ld\n", sum, total, most);
}
"""
_STEP = "bodies[i].x += bodies[i].v * dt;"
_LOOP = f"for (long i = 0; i < n; i++) {{ {_STEP} }}"
_COUNT = f"for (long i = 0; i < n; i++) {{ {_STEP} here += (long)bodies[i].x; }}"
_FLOATS = f"for (long i = 0; i < n; i++) {{ {_STEP} part += bodies[i].x; }}"
_OWN = _LOOP.replace("bodies", "own")
"""Atomic operations make gcc load a global pointer anew each time."""
_FOR = '_Pragma("omp parallel for %s") '

DETERMINISTIC = {
    "sum": _FOR % "reduction(+ : here)" + _COUNT,
    "difference": _FOR % "reduction(- : here)" + _COUNT.replace("+= (long)", "-= (long)"),
    "maximum": _FOR % "reduction(max : here)" + _COUNT.replace("here += (long)bodies[i].x", "if ((long)bodies[i].x > here) here = bodies[i].x"),
    "largest": _FOR % "reduction(max : part)" + _FLOATS.replace("part += bodies[i].x", "if (bodies[i].x > part) part = bodies[i].x"),
    "bits": _FOR % "reduction(| : here)" + _COUNT.replace("+= (long)", "|= (long)"),
    "any": _FOR % "reduction(&& : here)" + _COUNT.replace("here += (long)bodies[i].x", "here = here && bodies[i].x > 1"),
    "dynamic": _FOR % "schedule(dynamic, 64)" + _LOOP,
    "monotonic": _FOR % "schedule(monotonic : dynamic, 64)" + _LOOP,
    "guided": _FOR % "schedule(guided)" + _LOOP,
    "runtime": _FOR % "schedule(runtime)" + _LOOP,
    "chunks": _FOR % "schedule(static, 64)" + _LOOP,
    "unsigned": _FOR % "schedule(dynamic, 64)" + _LOOP.replace("long i = 0; i < n", "unsigned long i = 0; i < (unsigned long)n"),
    "dynamic sum": _FOR % "schedule(dynamic, 64) reduction(+ : here)" + _COUNT,
    "critical": '_Pragma("omp parallel") { long mine = 0; _Pragma("omp for")' + _COUNT.replace("here", "mine") + '_Pragma("omp critical") here += mine; }',
    "named": '_Pragma("omp parallel") { long mine = 0; _Pragma("omp for")' + _COUNT.replace("here", "mine") + '_Pragma("omp critical(tally)") if (mine > most) most = mine; }',
    "atomic": '_Pragma("omp parallel") { long mine = 0; _Pragma("omp for nowait")' + _COUNT.replace("here", "mine") + '_Pragma("omp atomic") here += mine; }',
    "array": "unsigned long *w = counts; " + _FOR % "reduction(+ : w[:4]) firstprivate(own)" + _OWN.replace("dt; ", "dt; w[i & 3] += i; "),
    "histogram": _FOR % "firstprivate(own)" + _OWN.replace("dt; ", "dt; _Pragma(\"omp atomic\") counts[(long)own[i].v & 15]++; "),
    "hits": _FOR % "firstprivate(own)" + _OWN.replace("dt; ", "dt; _Pragma(\"omp atomic\") own[i].hits += i; "),
    "single": '_Pragma("omp parallel") { _Pragma("omp for")' + _LOOP + '_Pragma("omp single") total += n; }',
    "master": '_Pragma("omp parallel") { _Pragma("omp for")' + _LOOP + ' _Pragma("omp master") total += n; }',
    "barrier": '_Pragma("omp parallel") { int t = omp_get_thread_num(); long mine = 0; _Pragma("omp for nowait")' + _COUNT.replace("here", "mine") + ' per[t] = mine; _Pragma("omp barrier") if (t == 0) for (int k = 0; k < omp_get_num_threads(); k++) total += per[k]; }',
    "sections": '_Pragma("omp parallel sections") { _Pragma("omp section") for (long i = 0; i < n / 2; i++) ' + _STEP + ' _Pragma("omp section") for (long i = n / 2; i < n; i++) ' + _STEP + " }",
    "ordered": _FOR % "schedule(static, 500) ordered firstprivate(own)" + _OWN.replace("dt; ", "dt; _Pragma(\"omp ordered\") total = total * 3 + i; "),
}  # fmt: skip
"""Regions that leave the same bytes however the threads run."""

QUICK = (
    "sum", "largest", "any", "dynamic", "chunks", "critical", "atomic", "array", "single", "barrier", "sections", "ordered",
)  # fmt: skip
KINDS = [pytest.param(name, marks=[] if name in QUICK else pytest.mark.slow) for name in DETERMINISTIC]
"""Names of all of those, of which the others are run with the slow tests."""

ROUNDED = {
    "sum": _FOR % "reduction(+ : part)" + _FLOATS,
    "dynamic sum": _FOR % "schedule(dynamic, 64) reduction(+ : part)" + _FLOATS,
    "critical": '_Pragma("omp parallel") { double mine = 0; _Pragma("omp for nowait")' + _FLOATS.replace("part", "mine") + '_Pragma("omp critical") part += mine; }',
    "floats": '_Pragma("omp parallel") { float mine = 0; _Pragma("omp for nowait")' + _FLOATS.replace("part", "mine") + '_Pragma("omp atomic") part += mine; }',
    "several": '_Pragma("omp parallel") { double mine = 0; _Pragma("omp for nowait")' + _FLOATS.replace("part", "mine") + 'for (int k = 0; k < 4; k++) _Pragma("omp atomic") weights[k] += mine * 1.1 * k; }',
}  # fmt: skip
"""Regions that add up floating-point numbers in whatever order the threads come."""

_SHORT = "for (int i = 0; i < (int)n; i++) {"
_LOCALS = "double a = dt, b = dt * 2, c = dt * 3, d = dt * 4; long f = total; float g = dt; int h = (int)total; "
_USED = "for (long i = 0; i < n; i++) { bodies[i].x += bodies[i].v * (a + b * c - d) + f * g + h; }"
SHAPES = {
    "int": _FOR % "" + f"{_SHORT} {_STEP} }}",
    "int dynamic": _FOR % "schedule(dynamic, 16)" + f"{_SHORT} {_STEP} }}",
    "unsigned guided": _FOR % "schedule(guided)" + f"{_SHORT} {_STEP} }}".replace("int", "unsigned"),
    "last": "long last = 0; " + _FOR % "lastprivate(last)" + f"{_SHORT} last = i * 2; {_STEP} }} total += last;",
    "values": _LOCALS + _FOR % "firstprivate(a, b, c, d, f, g, h)" + _USED,
    "references": _LOCALS + _FOR % "" + _USED + " total += (long)(a + b + c + d + f + g + h);",
    "collapsed": _FOR % "collapse(2)" + f"for (long k = 0; k < n / 10; k++) for (int j = 0; j < 10; j++) {{ long i = k * 10 + j; {_STEP} }}",
    "number": _FOR % "num_threads(2)" + _LOOP,
    "captured": _FOR % "" + f'{_SHORT} long k; _Pragma("omp atomic capture") k = total++; (void)k; {_STEP} }}',
    "beside": f'_Pragma("omp parallel") {{ _Pragma("omp for nowait") {_SHORT} {_STEP} }} _Pragma("omp for") {_SHORT} bodies[i].hits += i; }} }}',
    "private": f'_Pragma("omp parallel") {{ double w[16] = {{0}}; _Pragma("omp for") {_SHORT} w[i & 15] += bodies[i].v; bodies[i].x += w[(i * 7) & 15]; }} }}',
}  # fmt: skip
"""Regions whose bodies have other arguments, counters and frames; they leave the same bytes however the threads run."""

REFUSED = {
    "task": ('_Pragma("omp parallel") { _Pragma("omp single") _Pragma("omp task") ' + _LOOP + " }", "GOMP_task"),
    "lock": ('static omp_lock_t lock; _Pragma("omp parallel") { omp_set_lock(&lock); ' + _LOOP + " omp_unset_lock(&lock); }", "omp_set_lock"),
    "clock": ('_Pragma("omp parallel") { double t = omp_get_wtime(); for (long i = 0; i < n; i++) bodies[i].x += t; }', "omp_get_wtime"),
    "nested": ('_Pragma("omp parallel") { _Pragma("omp parallel for") ' + _LOOP + " }", "GOMP_parallel"),
    "copy": ('_Pragma("omp parallel") { double t; _Pragma("omp single copyprivate(t)") t = dt; for (long i = 0; i < n; i++) bodies[i].x += t; }', "GOMP_single_copy_start"),
}  # fmt: skip
"""Regions that are not lifted, and the function that the reason names."""


def build(folder: Path, body: str, *flags: str, size: int = 3000, compiler: str = "gcc") -> Path:
    """Compile a program with that region."""
    source, program = folder / "sync.c", folder / "sync"
    source.write_text(_MAIN % body)
    command = [compiler, "-g", f"-DSIZE={size}", *(flags or ("-O2",)), "-fopenmp", "-o", str(program), str(source), "-lm"]
    subprocess.run(command, check=True)
    return program


def lifted_region(program: Path, prefix: str = "move._omp_fn") -> Lifted:
    """The region of ``move``; of one with other bodies in it, the first that is not lifted says why."""
    binary = ElfBinary.open(program)
    bodies = [f for f in binary.functions if is_region_body(f) and f.name.startswith(prefix)]
    made = [lift(binary.region(body, 0x555555554000, callees=True), result="none") for body in bodies]
    return made[0]


def nested_items(body: tuple[Item, ...]) -> list[Item]:
    return [i for item in body for i in (item, *(nested_items(item.body) if isinstance(item, LiftedLoop) else ()))]
