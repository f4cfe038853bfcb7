"""The whole road on parallel regions: verified with the program's own threads, or a line that says why not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from layout_advise.build.build_and_compare import code_of, forbidden
from layout_advise.build.compile_flags import Compiled
from layout_advise.build.mockups import expected_moves, make_all
from layout_advise.build.recipes import recipes
from layout_advise.errors import SnapshotError
from layout_advise.mockup.ir.lifted import Lifted
from layout_advise.observe.chosen_elements import select
from layout_advise.observe.linear_index import linearise
from layout_advise.observe.observe import Observation, observed
from layout_advise.propose.proposals import propose
from layout_advise.reports.model.contract import read_report
from layout_advise.reports.model.hotspot import HotspotReport
from layout_advise.study import attempt
from layout_advise.tracer.backends.clone.record_team import trace_region
from layout_advise.tracer.trace.trace_file import read_trace
from layout_advise.verify.verify import Finding, Subject
from layout_advise.verify.verify_team import verify_team
from tests.support import openmp_programs as programs
from tests.support.tracing.parked_teams import stopped

PROGRAM = r"""
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <x86intrin.h>
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
    own[omp_get_thread_num()].stamp = __rdtsc();
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


def build(folder: Path, *flags: str, compiler: str = "gcc") -> Path:
    source = folder / "bodies.c"
    source.write_text(PROGRAM)
    subprocess.run([compiler, "-g", "-O2", "-fopenmp", *flags, "-o", folder / "bodies", source], check=True)
    return folder / "bodies"


def advised(program: Path, threads: int, *options: str, body: str = "move._omp_fn.0") -> HotspotReport:
    run = program.parent / "run"
    command = [
        sys.executable,
        "-m",
        "layout_advise",
        "trace",
        "-q",
        "-f",
        "--hotspot",
        body,
        "-o",
        str(run),
        *options,
    ]
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
    done = subprocess.run([*command, "--", str(program)], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    return read_report(run).hotspots[0]


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 3])
def test_layouts_are_verified_with_the_programs_own_threads(tmp_path: Path, threads: int) -> None:
    found = advised(build(tmp_path), threads, "--restores", "1", "--candidates", "2")
    assert (found.threads, found.clock, found.snapshot) == (threads, "wall", "criu")
    assert found.trace is not None
    assert not found.trace.truncated
    assert [(s.name, s.layout) for s in found.structures] == [("bodies", "A_40000 ⊗ S_{0,1;8}")]
    assert found.identity is not None
    assert found.identity.evidence == "verified", found.identity.reason
    assert {c.evidence for c in found.candidates} == {"verified"}, [c.reason for c in found.candidates]
    for candidate in found.candidates:
        assert candidate.verification is not None
        assert candidate.verification.calls == 3
        assert candidate.verification.bytes_changed > 0
    assert found.original.ns_steady is not None
    assert found.by_threads is not None
    assert found.by_threads.own == threads
    assert found.by_threads.candidate in {c.id for c in found.candidates}
    for count in found.by_threads.counts:
        assert (count.reason, count.candidate_reason, count.same_result) == (None, None, True)
        assert count.original is not None
        assert count.speedup is not None
        assert count.scaling is not None
        assert len(count.shares) == len(count.candidate_shares) == count.threads


def observe(program: Path, threads: int, folder: Path) -> tuple[Observation, dict[str, Finding]]:
    """Trace, lift, build and compare at one call, without timing."""
    with stopped(program, 3, threads, "move") as (process, binary, function):
        region = binary.region(function, process.load_base, callees=True)
        with process.fork() as copy:
            seen = observed(process, binary, region, trace_region(process, copy, region, 3))
        lifted = attempt(region, "none")
        assert isinstance(lifted, Lifted)
        seen = select(linearise(seen, lifted), lifted)
        wanted = recipes(propose(seen, 2), code := code_of(seen, lifted))
        compiler = Compiled("gcc", ("-O2",))
        made = make_all(wanted, code, seen.trace, seen.structures, compiler, folder, lambda done, total: None)
        subjects = []
        for item in made:
            assert item.mockup is not None, item.reason
            candidate = item.recipe.candidate
            moves = expected_moves(candidate, lifted, seen.trace, seen.structures) if candidate is not None else None
            subjects.append(Subject(item.recipe.name, item.mockup, item.check, forbidden(candidate), moves))
        assert seen.team is not None
        return seen, dict(verify_team(process, subjects, lifted, seen.team, folder))


def same_bytes(program: Path, threads: int, folder: Path) -> None:
    """The identity and all layouts leave what the original leaves, and a wrong map is noticed."""
    seen, found = observe(program, threads, folder)
    assert found.pop("wrong").reason is not None
    assert len(found) >= 4
    assert {name: finding.evidence for name, finding in found.items()} == dict.fromkeys(found, "verified")
    assert all(finding.bytes_changed > 0 for finding in found.values())
    assert seen.team is not None
    assert len(seen.team.threads) == threads


def test_two_threads_trace_lift_and_compare(tmp_path: Path) -> None:
    seen, found = observe(build(tmp_path), 2, tmp_path)
    assert seen.team is not None
    assert len(seen.team.threads) == 2
    assert seen.trace.accesses == seen.team.accesses
    assert found.pop("wrong").reason is not None
    assert len(found) >= 4
    assert {name: finding.reason for name, finding in found.items()} == dict.fromkeys(found)
    assert all(finding.bytes_changed > 0 for finding in found.values())


def test_sums_of_all_threads_are_compared_up_to_rounding(tmp_path: Path) -> None:
    few = ("--restores", "1", "--candidates", "1")
    found = advised(build(tmp_path, "-DREDUCE", "-DSIZE=400000", "-DCALLS=12"), 2, *few)
    assert found.threads == 2
    assert found.identity is not None
    assert found.identity.evidence in ("verified", "close"), found.identity.reason
    assert found.candidates
    assert {c.evidence for c in found.candidates} <= {"verified", "close"}, [c.reason for c in found.candidates]
    assert found.identity.evidence == "verified" or found.verdict.action == "undecided"


@pytest.mark.parametrize(
    ("size", "calls", "reason", "text"),
    [
        (64, 12, "short-calls", "parallel regions are not timed several at a time"),
        (40000, 2, "few-calls", "the loops of a parallel region are not measured apart"),
    ],
)
def test_short_and_rare_regions_are_neither_batched_nor_taken_apart(
    tmp_path: Path, size: int, calls: int, reason: str, text: str
) -> None:
    found = advised(build(tmp_path, f"-DSIZE={size}", f"-DCALLS={calls}"), 1)
    assert (found.verdict.action, found.verdict.reason) == ("undecided", reason)
    assert text in found.verdict.text
    assert found.batch is None
    assert found.region == "function"


def test_false_sharing_is_found_with_fields_and_lines(tmp_path: Path) -> None:
    with stopped(build(tmp_path, "-DCOUNT"), 3, 2, "move") as (process, binary, function), process.fork() as copy:
        region = binary.region(function, process.load_base)
        seen = observed(process, binary, region, trace_region(process, copy, region, 3))
    (shared,) = seen.shared
    assert (shared.object.name, shared.false, shared.true, shared.threads) == ("own", 1, 0, (0, 1))
    assert shared.fields == ("count",)
    assert shared.places == ("bodies.c:23",)


def test_a_region_that_leaves_other_bytes_each_time_cannot_be_compared(tmp_path: Path) -> None:
    program = build(tmp_path, "-DSTAMP")
    with stopped(program, 3, 2, "move") as (process, binary, function):
        region = binary.region(function, process.load_base)
        with process.fork() as copy:
            trace = trace_region(process, copy, region, 3)
        with pytest.raises(SnapshotError, match="it leaves other bytes behind when it runs again"):
            verify_team(process, (), None, trace, tmp_path)  # type: ignore[arg-type]


def test_without_criu_a_team_is_refused_by_name(tmp_path: Path) -> None:
    program = build(tmp_path)
    command = [
        sys.executable,
        "-m",
        "layout_advise",
        "trace",
        "-q",
        "-f",
        "--hotspot",
        "move._omp_fn.0",
        "--snapshot",
        "fork",
    ]
    environment = {**os.environ, "OMP_NUM_THREADS": "2"}
    done = subprocess.run(
        [*command, "-o", str(tmp_path / "run"), "--", str(program)],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    assert done.returncode == 1
    assert "cannot copy a program with a team of 2 threads: a fork has one thread only" in done.stderr


def test_threads_beside_a_serial_hotspot_are_told_of(tmp_path: Path) -> None:
    program = programs.build(tmp_path, "beside")
    command = [
        sys.executable,
        "-m",
        "layout_advise",
        "trace",
        "--hotspot",
        "hot",
        "--until",
        "trace",
        "-o",
        str(tmp_path / "run"),
    ]
    done = subprocess.run([*command, "--", str(program)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "1 other thread lives beside the hotspot" in done.stderr
    trace = read_trace(tmp_path / "run" / "trace.lat")
    assert trace.threads == ()
    assert not trace.truncated
