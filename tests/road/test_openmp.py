"""The whole road on parallel regions: verified with the program's own threads, or a line that says why not."""

from __future__ import annotations

from pathlib import Path

import pytest

from layout_advise.describe.own_uses import by_thread, own_uses
from layout_advise.errors import SnapshotError
from layout_advise.observe.observe import observed
from layout_advise.rundir import find_trace
from layout_advise.tracer.backends.clone.record_team import trace_region
from layout_advise.tracer.trace.trace_file import read_trace
from layout_advise.verify.copies import in_copies
from tests.support.command import run_command
from tests.support.openmp import programs as programs
from tests.support.openmp.road import advised, build_bodies, trace_and_compare
from tests.support.tracing.openmp_traces import parked_team


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 3])
def test_layouts_are_verified_with_the_programs_own_threads(tmp_path: Path, threads: int) -> None:
    found = advised(build_bodies(tmp_path), threads, "--restores", "1", "--candidates", "2")
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


def test_two_threads_trace_lift_and_compare(tmp_path: Path) -> None:
    seen, found = trace_and_compare(build_bodies(tmp_path), 2, tmp_path)
    assert seen.team is not None
    assert len(seen.team.threads) == 2
    (bodies,) = seen.structures
    shared = by_thread(bodies, seen)
    assert own_uses(bodies, seen) == bodies.fields
    assert sorted(shared) == [0, 1]
    for n, field in enumerate(bodies.fields):
        reads, writes = ([getattr(shared[t][n], kind) for t in shared] for kind in ("reads", "writes"))
        assert (sum(reads), sum(writes)) == (field.reads, field.writes)
        assert reads[0] == reads[1]  # each has half of the bodies
    assert seen.trace.accesses == seen.team.accesses
    assert found.pop("c1-wrong").reason is not None
    assert len(found) >= 4
    assert {name: finding.reason for name, finding in found.items()} == dict.fromkeys(found)
    assert all(finding.bytes_changed > 0 for finding in found.values())


@pytest.mark.slow
def test_sums_of_all_threads_are_compared_up_to_rounding(tmp_path: Path) -> None:
    few = ("--restores", "1", "--candidates", "1")
    found = advised(build_bodies(tmp_path, "-DREDUCE", "-DSIZE=400000", "-DCALLS=12"), 2, *few)
    assert found.threads == 2
    assert found.identity is not None
    assert found.identity.evidence in ("verified", "close"), found.identity.reason
    assert found.candidates
    assert {c.evidence for c in found.candidates} <= {"verified", "close"}, [c.reason for c in found.candidates]
    assert found.identity.evidence == "verified" or found.verdict.action == "undecided"


@pytest.mark.slow
def test_short_regions_are_not_batched(tmp_path: Path) -> None:
    found = advised(build_bodies(tmp_path, "-DSIZE=64", "-DCALLS=12"), 1)
    assert (found.verdict.action, found.verdict.reason) == ("undecided", "short-calls")
    assert "parallel regions are not timed several at a time" in found.verdict.text
    assert found.batch is None
    assert found.region == "function"


def test_false_sharing_is_found_with_fields_and_lines(tmp_path: Path) -> None:
    with parked_team(build_bodies(tmp_path, "-DCOUNT"), 3, 2, "move") as (process, binary, function), process.fork() as copy:
        region = binary.region(function, process.load_base)
        seen = observed(process, binary, region, trace_region(process, copy, region, 3))
    (shared,) = seen.shared
    assert (shared.object.name, shared.false, shared.true, shared.threads) == ("own", 1, 0, (0, 1))
    assert shared.fields == ("count",)
    assert shared.places == ("bodies.c:23",)


def test_a_region_that_leaves_other_bytes_each_time_cannot_be_compared(tmp_path: Path) -> None:
    program = build_bodies(tmp_path, "-DSTAMP")
    with parked_team(program, 3, 2, "move") as (process, binary, function):
        region = binary.region(function, process.load_base)
        with process.fork() as copy:
            trace = trace_region(process, copy, region, 3)
        refused = pytest.raises(SnapshotError, match="it leaves other bytes behind when it runs again")
        with refused, in_copies(process, (), None, trace):
            pass


def test_without_criu_a_team_is_refused_by_name(tmp_path: Path) -> None:
    program = build_bodies(tmp_path)
    words = ("trace", "-q", "--hotspot", "move._omp_fn.0", "--snapshot", "fork", "-o", tmp_path / "run", "--", program)
    done = run_command(*words, OMP_NUM_THREADS="2")
    assert done.returncode == 1
    assert "cannot copy a program with a team of 2 threads: a fork has one thread only" in done.stderr


def test_the_name_of_a_function_stands_for_the_region_that_it_starts(tmp_path: Path) -> None:
    program = build_bodies(tmp_path)
    words = ("trace", "--hotspot", "move", "--until", "trace", "-o", tmp_path / "run", "--", program)
    done = run_command(*words, OMP_NUM_THREADS="2")
    assert done.returncode == 0, done.stderr
    assert len(read_trace(find_trace(tmp_path / "run")).threads) == 2


@pytest.mark.slow
def test_threads_beside_a_serial_hotspot_are_told_of(tmp_path: Path) -> None:
    program = programs.build(tmp_path, "beside")
    done = run_command("trace", "--hotspot", "hot", "--until", "trace", "-o", tmp_path / "run", "--", program)
    assert done.returncode == 0, done.stderr
    assert "1 other thread lives beside the hotspot" in done.stderr
    trace = read_trace(find_trace(tmp_path / "run"))
    assert trace.threads == ()
    assert not trace.truncated
