"""A program with one parallel region, and its mock-ups compared with the region by the program's own threads."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

from layout_advise.build.mockups import expected_moves, make_all
from layout_advise.mockup.ir.lifted import Lifted
from layout_advise.observe.chosen_elements import select
from layout_advise.observe.linear_index import linearise
from layout_advise.observe.observe import Observation, observed
from layout_advise.propose.compiler import Compiled
from layout_advise.propose.proposals import propose
from layout_advise.propose.recipes import recipes
from layout_advise.propose.source import Source, code_of
from layout_advise.propose.stage import attempt
from layout_advise.reports.model.hotspot import HotspotReport
from layout_advise.tracer.backends.clone.record_team import trace_region
from layout_advise.tracer.folding.fold import fold
from layout_advise.tracer.trace.trace import Reference, Registers, Thread, Trace
from layout_advise.verify.copies import in_copies
from layout_advise.verify.verify import Finding, Subject, verify
from tests.support.command import advise
from tests.support.tracing.openmp_traces import parked_team

PROGRAM = r"""
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

struct body { double x, v, rest[6]; } *bodies;
#ifndef SIZE
#define SIZE 40000
#define CALLS 12
#endif
long n = SIZE; double sum; struct { double count, stamp; } own[32];
__attribute__((noinline)) void move(double dt)
{
#ifdef REDUCE
#pragma omp parallel for reduction(+ : sum)
    for (long i = 0; i < n; i++) sum += bodies[i].x * dt;
#elif defined STAMP
#pragma omp parallel
    own[omp_get_thread_num()].stamp = __builtin_ia32_rdtsc();
#elif defined COUNT
#pragma omp parallel
    { double *mine = &own[omp_get_thread_num()].count;
      for (long i = 0; i < n; i++) *(volatile double *)mine += dt; }
#else
#pragma omp parallel for schedule(static)
    for (long i = 0; i < n; i++) bodies[i].x += bodies[i].v * dt;
#endif
}
int main(void)
{
    bodies = calloc(n, sizeof *bodies);
    for (long i = 0; i < n; i++) bodies[i].v = bodies[i].x = i;
    for (int call = 0; call < CALLS; call++) move(0.25);
    double total = sum; for (long i = 0; i < n; i++) total += bodies[i].x;
    printf("%.17g\n", total + own[0].count);
}
"""


def build_bodies(folder: Path, *flags: str, compiler: str = "gcc") -> Path:
    source = folder / "bodies.c"
    source.write_text(PROGRAM)
    subprocess.run([compiler, "-g", "-O2", "-fopenmp", *flags, "-o", folder / "bodies", source], check=True)
    return folder / "bodies"


def advised(program: Path, threads: int, *options: str, body: str = "move._omp_fn.0") -> HotspotReport:
    words = ("-f", "--hotspot", body, *options)
    return advise([program], *words, folder=program.parent, OMP_NUM_THREADS=str(threads)).hotspots[0]


def trace_and_compare(program: Path, threads: int, folder: Path) -> tuple[Observation, dict[str, Finding]]:
    """Trace, lift, build and compare at one call, without timing."""
    with parked_team(program, 3, threads, "move") as (process, binary, function):
        region = binary.region(function, process.load_base, callees=True)
        with process.fork() as copy:
            seen = observed(process, binary, region, trace_region(process, copy, region, 3))
        lifted = attempt(region, "none")
        assert isinstance(lifted, Lifted)
        seen = select(linearise(seen, lifted), lifted)
        wanted = recipes(propose(seen, 2), code := code_of(seen, lifted))
        compiler = Compiled("gcc", ("-O2",))
        source = Source(code, lifted, seen.trace, seen.structures, compiler)
        subjects = []
        for variant, item in make_all(wanted, source, compiler, folder).items():
            assert item.path is not None, item.reason
            candidate = item.recipe.candidate
            moves = expected_moves(candidate, source.as_lifted, source) if candidate is not None else None
            subjects.append(Subject(variant, item.path, item.check, source.forbidden(candidate), moves))
        assert seen.team is not None
        with in_copies(process, subjects, lifted, seen.team) as runner:
            return seen, {str(v): f for v, f in verify(runner, subjects, folder).items()}


def assert_same_bytes(program: Path, threads: int, folder: Path) -> None:
    """The identity and all layouts leave what the original leaves, and a wrong map is noticed."""
    seen, found = trace_and_compare(program, threads, folder)
    assert found.pop("c1-wrong").reason is not None
    assert len(found) >= 4
    assert {name: finding.evidence for name, finding in found.items()} == dict.fromkeys(found, "verified"), found
    assert all(finding.bytes_changed > 0 for finding in found.values())
    assert seen.team is not None
    assert len(seen.team.threads) == threads


def trace_of_threads(threads: Sequence[dict[int, list[int]]]) -> Trace:
    """A trace of loads (address lists by pc) for each thread."""
    rows = [(number, pc, addresses) for number, own in enumerate(threads) for pc, addresses in own.items()]
    return Trace(
        "hot",
        1,
        "clone",
        tuple(Reference(n, pc, 0, "read", 8, number) for n, (number, pc, _) in enumerate(rows)),
        tuple(fold(addresses) if addresses else None for *_, addresses in rows),
        sum(len(addresses) for *_, addresses in rows),
        False,
        Registers((0,) * 16, 0, 0, 0, 0),
        (),
        (),
        threads=tuple(Thread(n, 0, 0, 0, 0) for n in range(len(threads))),
    )
