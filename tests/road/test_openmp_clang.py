"""Parallel regions of clang's runtime: started, traced, lifted and compared as those of gcc's."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from layout_advise.errors import NotLiftedError, TraceError
from layout_advise.mockup.evidence.binding import accesses
from layout_advise.mockup.ir.lifted import Lifted, RuntimeCall
from layout_advise.mockup.machine.openmp_runtime import ROUTINES, is_dynamic, refusal_remark
from layout_advise.tracer.backends.clone.record_team import trace_region
from layout_advise.tracer.program.binary import ElfBinary
from layout_advise.tracer.program.openmp_regions import is_region_body
from layout_advise.tracer.sampling.probe import probe
from layout_advise.tracer.snapshot.snapshots import CriuSnapshots
from layout_advise.tracer.trace.trace_file import read_trace, write_trace
from layout_advise.verify.copies import in_copies
from layout_advise.verify.order_dependent_sums import SharedSum, order_dependent
from tests.support import slower
from tests.support.compilers import HASWELL
from tests.support.openmp import programs as programs
from tests.support.openmp import sync_programs as regions
from tests.support.openmp.programs import needs_libomp, with_threads
from tests.support.openmp.road import advised, assert_same_bytes, build_bodies, trace_and_compare, trace_of_threads
from tests.support.openmp.sync_programs import DETERMINISTIC, KINDS, ROUNDED, SHAPES, lifted_region, nested_items
from tests.support.tracing.openmp_traces import N, body_of, cells_by_thread, parked_team, share, team_entry, team_trace

pytestmark = needs_libomp

REFUSED = {
    "task": "__kmpc_omp_task_alloc",
    "lock": "omp_set_lock",
    "clock": "omp_get_wtime",
    "nested": "__kmpc_fork_call",
    "copy": "__kmpc_copyprivate",
}
COMPARED = ["chunks"]


def build(folder: Path, name: str, *flags: str) -> Path:
    """Without further flags loops are not unrolled: one reference has all accesses of an operand."""
    return programs.build(folder, name, *(flags or ("-O1",)), compiler="clang")


def build_region(folder: Path, body: str, *flags: str) -> Path:
    return regions.build(folder, body, *flags, compiler="clang")


def made_by_clang(folder: Path, body: str, *flags: str) -> Lifted:
    return lifted_region(build_region(folder, body, *flags), ".omp_outlined.")


@pytest.mark.parametrize("threads", [1, 3])
def test_every_thread_s_accesses_are_those_of_the_static_schedule(tmp_path: Path, threads: int) -> None:
    trace = team_trace(build(tmp_path, "static"), 3, threads)
    assert [t.number for t in trace.threads] == list(range(threads))
    for kind in ("read", "write"):
        assert cells_by_thread(trace, kind) == {t: list(share(t, threads)) for t in range(threads)}
    for thread in trace.threads:
        own = trace.of_thread(thread).registers.gpr
        assert len(thread.more) == 5
        assert thread.rsp < thread.data < thread.end < thread.rsp + (1 << 16)
        assert (own[4], own[7]) == (thread.rsp, thread.data)
        assert (own[6], own[2], own[1], own[8], own[9]) == thread.more
        assert thread.owns(thread.data)
        assert not thread.owns(thread.end)
    write_trace(trace, tmp_path / "trace.lat")
    assert read_trace(tmp_path / "trace.lat") == trace


@pytest.mark.parametrize("call", [3, *slower((4,))])
def test_a_region_that_asks_for_a_number_of_threads_gets_it_again(tmp_path: Path, call: int) -> None:
    threads = 2 + (call - 1) % 2
    with parked_team(build(tmp_path, "changing"), call, 4) as (process, binary, function):
        region = binary.region(function, process.load_base, callees=True)
        for _ in range(2):
            with process.fork() as copy:
                copy.run(0)  # the number that the program asked for is used up by this
                assert copy.team() == threads
                trace = trace_region(process, copy, region, call)
            assert cells_by_thread(trace, "write") == {t: list(share(t, threads)) for t in range(threads)}


def test_a_dynamic_schedule_gives_every_iteration_to_one_thread(tmp_path: Path) -> None:
    trace = team_trace(build(tmp_path, "dynamic"), 2, 2)
    cells = [cell for part in cells_by_thread(trace, "write").values() for cell in part]
    assert sorted(cells) == list(range(N))


@pytest.mark.parametrize("flags", [("-O2", "-fno-plt"), ("-O2", "-no-pie", "-fno-pie"), ("-O0",), ("-O3", "-march=haswell")])
def test_the_calls_of_one_body_are_counted_however_it_was_compiled(tmp_path: Path, flags: tuple[str, ...]) -> None:
    program = build(tmp_path, "two", *flags)
    entry = team_entry(program, body_of(ElfBinary.open(program)))
    assert entry.symbol == "__kmpc_fork_call"
    seen = probe([str(program)], entry, env=with_threads(2), timeout=60)
    assert (seen.calls, seen.threads, len(seen.times)) == (8, 1, 8)  # not those of the other region


@pytest.mark.parametrize(
    ("body", "flags", "why"),
    [
        ("#pragma omp parallel if(a > 2)\n a++;", (), "f also calls its body directly, as for an if clause"),
        ("#pragma omp parallel\n a++;", ("-O0", "-g"), "it is called by .omp_outlined., which is the region"),
        ("#pragma omp teams\n#pragma omp parallel\n a++;", (), "its file also calls __kmpc_fork_teams"),
    ],
)
def test_bodies_whose_runs_are_not_all_seen_are_refused(tmp_path: Path, body: str, flags: tuple[str, ...], why: str) -> None:
    source, program = tmp_path / "body.c", tmp_path / "body"
    source.write_text(f"volatile int a; void f(void) {{\n{body}\n}} int main(void) {{ f(); }}")
    subprocess.run(["clang", *(flags or ("-O2",)), "-fopenmp", "-o", program, source], check=True)
    bodies = [f for f in ElfBinary.open(program).functions if is_region_body(f)]
    with pytest.raises(TraceError) as refused:
        team_entry(program, next((f for f in bodies if f.name.endswith("_debug__")), bodies[0]))
    assert refused.value.why == why


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_of_region_is_lifted_with_its_calls(tmp_path: Path, name: str) -> None:
    region = made_by_clang(tmp_path, DETERMINISTIC[name], "-O2")
    calls = [i for i in nested_items(region.body) if isinstance(i, RuntimeCall)]
    assert calls
    assert {len(call.args) - len(ROUTINES[call.function].parameters) for call in calls} == {0}
    assert is_dynamic(region.body) == any("dispatch" in c.function or "single" in c.function for c in calls)
    trace = trace_of_threads([{access.origin.pc: [4096] for access in accesses(region.body)}])
    assert order_dependent(region, trace) == ()


@pytest.mark.slow
@pytest.mark.parametrize("flags", [("-O1",), HASWELL])
@pytest.mark.parametrize("name", DETERMINISTIC)
def test_every_kind_of_region_is_lifted_from_other_code(tmp_path: Path, name: str, flags: tuple[str, ...]) -> None:
    made_by_clang(tmp_path, DETERMINISTIC[name], *flags)


@pytest.mark.parametrize("name", ROUNDED)
def test_sums_of_floats_depend_on_the_order(tmp_path: Path, name: str) -> None:
    region = made_by_clang(tmp_path, ROUNDED[name], "-O2")
    trace = trace_of_threads([{access.origin.pc: [4096] for access in accesses(region.body)}])
    assert order_dependent(region, trace) == (SharedSum(4096, 8),)


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_repeated_is_refused_by_name_and_says_why(tmp_path: Path, name: str) -> None:
    binary = ElfBinary.open(build_region(tmp_path, regions.REFUSED[name][0]))
    refusals = []
    for body in (f for f in binary.functions if is_region_body(f)):
        try:
            lifted_region(binary.path, body.name)
        except NotLiftedError as error:
            refusals.append(error.line())
    assert refusals
    assert all(f"{REFUSED[name]} ({refusal_remark(REFUSED[name])[2:-1]})" in line for line in refusals)


def compared(folder: Path, body: str, threads: int, *flags: str) -> None:
    assert_same_bytes(build_region(folder, body, *flags), threads, folder)


@pytest.mark.slow
@pytest.mark.parametrize("name", COMPARED)
def test_two_threads_leave_the_same_bytes(tmp_path: Path, name: str) -> None:
    compared(tmp_path, DETERMINISTIC[name], 2, "-O2")


@pytest.mark.slow
@pytest.mark.parametrize("name", DETERMINISTIC)
def test_every_kind_of_region_leaves_the_same_bytes(tmp_path: Path, name: str) -> None:
    compared(tmp_path, DETERMINISTIC[name], 2, "-O2")


@pytest.mark.slow
def test_arguments_on_the_stack_are_those_of_each_thread(tmp_path: Path) -> None:
    compared(tmp_path, SHAPES["references"], 2, "-O2")


@pytest.mark.slow
@pytest.mark.parametrize("flags", [("-O2",), HASWELL])
@pytest.mark.parametrize("name", SHAPES)
def test_other_arguments_counters_and_frames(tmp_path: Path, name: str, flags: tuple[str, ...]) -> None:
    compared(tmp_path, SHAPES[name], 2, *flags)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["sum", "array", "chunks", "named"])
@pytest.mark.parametrize(("threads", "flags"), [(1, ("-O2",)), (5, ("-O2",)), (3, HASWELL)])
def test_other_teams_and_flags_leave_the_same_bytes(tmp_path: Path, name: str, threads: int, flags: tuple[str, ...]) -> None:
    """From five threads on the runtime adds their parts up itself."""
    compared(tmp_path, DETERMINISTIC[name], threads, *flags)


@pytest.mark.slow
@pytest.mark.parametrize("threads", [3, 5])
@pytest.mark.parametrize("name", ROUNDED)
def test_sums_of_threads_are_compared_up_to_rounding(tmp_path: Path, name: str, threads: int) -> None:
    _, found = trace_and_compare(build_region(tmp_path, ROUNDED[name]), threads, tmp_path)
    assert found.pop("c1-wrong").reason is not None
    assert {finding.reason for finding in found.values()} == {None}
    assert {finding.evidence for finding in found.values()} <= {"verified", "close"}


def test_the_region_runs_with_other_numbers_of_threads(tmp_path: Path) -> None:
    with parked_team(build_bodies(tmp_path, compiler="clang"), 3, 2, "move") as (process, binary, function):
        region = binary.region(function, process.load_base)
        with process.fork() as copy:
            team = trace_region(process, copy, region, 3)
        assert isinstance(process.copies, CriuSnapshots)
        for count in (1, 3):
            with in_copies(process, (), None, team, count) as copies:
                assert copies.as_usual()
            with process.fork() as other:
                other.threads(count)
                assert other.team() == count
                other.prepare(0, (), ())
                wall, own = other.members(0, 3)
                assert len(own) == count
                assert wall > 0
                assert min(own) > 0


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 2])
def test_layouts_are_verified_with_the_programs_own_threads(tmp_path: Path, threads: int) -> None:
    few = ("--restores", "1", "--candidates", "2")
    found = advised(
        build_bodies(tmp_path, "-DSIZE=120000", "-DCALLS=60", compiler="clang"), threads, *few, body=".omp_outlined."
    )
    assert (found.threads, found.clock, found.snapshot) == (threads, "wall", "criu")
    assert [(s.name, s.layout) for s in found.structures] == [("bodies", "A_120000 ⊗ S_{0,1;8}")]
    assert found.identity is not None
    assert found.identity.evidence == "verified", found.identity.reason
    assert {c.evidence for c in found.candidates} == {"verified"}, [c.reason for c in found.candidates]
    assert found.by_threads is not None
    for count in found.by_threads.counts:
        assert (count.reason, count.candidate_reason, count.same_result) == (None, None, True)
        assert len(count.shares) == len(count.candidate_shares) == count.threads
