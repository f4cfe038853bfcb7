"""Parallel regions are traced with all their threads: against the addresses that the schedule prescribes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from layout_advise.cli import main
from layout_advise.errors import TraceError
from layout_advise.layoutalgebra.sets.nests import FoldedStream, expand
from layout_advise.rundir import find_trace
from layout_advise.tracer.backends.clone import record_team
from layout_advise.tracer.backends.clone.record import trace_call
from layout_advise.tracer.backends.clone.record_team import trace_region
from layout_advise.tracer.folding.merge_threads import merged
from layout_advise.tracer.objects.sharing import find_sharing
from layout_advise.tracer.process.patching import Entry
from layout_advise.tracer.program.binary import ElfBinary
from layout_advise.tracer.program.openmp_regions import is_region_body
from layout_advise.tracer.sampling.probe import probe
from layout_advise.tracer.snapshot.park import park
from layout_advise.tracer.trace.trace import Trace
from layout_advise.tracer.trace.trace_file import read_trace, write_trace
from tests.support.openmp.programs import build, with_threads
from tests.support.tracing.openmp_traces import CELL, N, body_of, cells_by_thread, parked_team, share, team_entry, team_trace


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_every_thread_s_accesses_are_those_of_the_static_schedule(tmp_path: Path, threads: int) -> None:
    trace = team_trace(build(tmp_path, "static"), 3, threads)
    assert [t.number for t in trace.threads] == list(range(threads))
    assert not trace.truncated
    for kind in ("read", "write"):
        assert cells_by_thread(trace, kind) == {t: list(share(t, threads)) for t in range(threads)}
    for thread in trace.threads:
        alone = trace.of_thread(thread)
        assert alone.accesses >= 3 * len(share(thread.number, threads))
        assert [r.id for r in alone.references] == list(range(len(trace.references) // threads))
    assert sum(trace.of_thread(t).accesses for t in trace.threads) == trace.accesses
    write_trace(trace, tmp_path / "trace.lat")
    assert read_trace(tmp_path / "trace.lat") == trace


def in_order(trace: Trace, thread: int) -> list[tuple[int, int]]:
    """What a thread did, by its order of execution: reference and address."""
    control = trace.team_control[thread]
    assert control.nodes is not None
    streams = {r.id: s for r, s in zip(trace.references, trace.streams, strict=True) if r.thread == thread}
    addresses = {n: iter(list(s.expand())) for n, s in streams.items() if isinstance(s, FoldedStream)}
    numbers = (n for p in expand(control.nodes) for n in range(control.pieces[p][0], control.pieces[p][1] + 1))
    done = [(number, next(addresses[number])) for number in numbers]
    assert all(next(rest, None) is None for rest in addresses.values())
    return done


@pytest.mark.parametrize("threads", [1, 3])
def test_every_thread_s_order_is_that_of_its_iterations(tmp_path: Path, threads: int) -> None:
    trace = team_trace(build(tmp_path, "static"), 3, threads)
    assert trace.control is None
    assert len(trace.team_control) == threads
    base = ElfBinary.open(tmp_path / "static")
    array = next(v for v in base.variables if v.source_name == "cells").address + 0x555555554000
    for thread in trace.threads:
        done = in_order(trace, thread.number)
        own = {r.id for r in trace.references if r.thread == thread.number}
        assert {number for number, _ in done} <= own
        inside = [a - array for _, a in done if array <= a < array + N * CELL]
        assert [place // CELL for place in inside] == [i for i in share(thread.number, threads) for _ in range(3)]
        alone = trace.of_thread(thread)
        assert alone.control is not None
        assert alone.control.nodes == trace.team_control[thread.number].nodes
        ends = [end for piece in alone.control.pieces for end in piece]
        assert (ends[0], ends[-1]) == (0, len(alone.references) - 1)
    assert merged(trace).team_control == ()


def test_show_tells_the_order_by_thread(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = team_trace(build(tmp_path, "static"), 3, 2)
    write_trace(trace, tmp_path / "trace.lat")
    assert main(["show", str(tmp_path)]) == 0
    text = capsys.readouterr().out
    assert "\norder of execution by thread\n  threads 0 to 1: " in text
    assert "not known" not in text
    assert main(["show", "--chrome", "-", str(tmp_path)]) == 0
    drawn = [e for e in json.loads(capsys.readouterr().out)["traceEvents"] if e.get("cat") == "loop"]
    assert {event["tid"] for event in drawn} == {1, 2}


def test_blocks_that_come_and_go_in_the_region(tmp_path: Path) -> None:
    trace = team_trace(build(tmp_path, "heap"), 3, 2)
    assert trace.watched
    sizes = {a.order: a.bytes for a in trace.allocations}
    assert {800, 808} <= {a.bytes for a in trace.born}
    assert sorted(sizes[order] for order in trace.freed if sizes[order] in (800, 808)) == [800, 808]
    write_trace(trace, tmp_path / "trace.lat")
    assert read_trace(tmp_path / "trace.lat") == trace


def test_the_first_region_starts_its_threads_inside_the_window(tmp_path: Path) -> None:
    trace = team_trace(build(tmp_path, "static"), 1, 3)
    assert cells_by_thread(trace, "write") == {t: list(share(t, 3)) for t in range(3)}


@pytest.mark.parametrize("call", [3, 4])
def test_teams_of_changing_size(tmp_path: Path, call: int) -> None:
    trace = team_trace(build(tmp_path, "changing"), call, 4)
    threads = 2 + (call - 1) % 2
    assert cells_by_thread(trace, "write") == {t: list(share(t, threads)) for t in range(threads)}


def test_a_dynamic_schedule_gives_every_iteration_to_one_thread(tmp_path: Path) -> None:
    program = build(tmp_path, "dynamic")
    assert team_entry(program, body_of(ElfBinary.open(program))).symbol == "GOMP_parallel_loop_nonmonotonic_dynamic"
    trace = team_trace(program, 2, 2)
    cells = [cell for part in cells_by_thread(trace, "write").values() for cell in part]
    assert sorted(cells) == list(range(N))


@pytest.mark.parametrize("flags", [("-O2", "-fno-plt"), ("-O2", "-no-pie", "-fno-pie"), ("-O0",), ("-O3", "-march=haswell")])
def test_the_start_of_the_region_is_found_however_it_was_compiled(tmp_path: Path, flags: tuple[str, ...]) -> None:
    program = build(tmp_path, "two", *flags)
    entry = team_entry(program, body_of(ElfBinary.open(program)))
    assert entry.symbol == "GOMP_parallel"
    seen = probe([str(program)], entry, env=with_threads(2), timeout=60)
    assert (seen.calls, seen.threads, len(seen.times)) == (8, 1, 8)  # not those of the other region


def test_a_full_buffer_cuts_the_trace(tmp_path: Path) -> None:
    trace = team_trace(build(tmp_path, "static"), 2, 2, cap=400)
    assert trace.truncated
    assert trace.accesses <= 400
    assert trace.limits == ()  # that is the caller's limit, who names the option


def rooms(monkeypatch: pytest.MonkeyPatch, records: int) -> None:
    monkeypatch.setattr(record_team, "room_for_records", lambda _: records)


def test_what_a_disk_with_little_room_cuts_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work = tmp_path / "work"
    work.mkdir()
    rooms(monkeypatch, 400)
    with parked_team(build(tmp_path, "static"), 2, 2) as (process, binary, function), process.fork() as copy:
        region = binary.region(function, process.load_base, callees=True)
        trace = trace_region(process, copy, region, 2, 1 << 20, folder=work)
    assert trace.truncated
    assert 400 - 2 * 48 <= trace.accesses <= 400
    assert trace.limits == (f"cut after {trace.accesses:,} accesses: no room for more in {work}",)


@pytest.mark.parametrize(
    ("cap", "room", "why"),
    [(1, 1 << 20, "fewer records are allowed \\(1\\) than there are threads \\(2\\)"), (1 << 20, 1, "no room")],
)
def test_no_record_for_each_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cap: int, room: int, why: str) -> None:
    rooms(monkeypatch, room)
    with pytest.raises(TraceError, match=f"^no trace of hot._omp_fn.0: {why}"):
        team_trace(build(tmp_path, "static"), 2, 2, cap)


def test_a_disk_that_is_full_in_the_middle_of_the_region(
    tmp_path: Path, small_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with parked_team(build(tmp_path, "long"), 2, 2) as (process, binary, function):
        region, before = binary.region(function, process.load_base, callees=True), process.registers()
        with monkeypatch.context() as patched, process.fork() as copy:
            rooms(patched, 1 << 24)  # as it was before others filled the disk
            why = f"^no trace of {region.symbol}: {small_disk} was filled while its call was recorded; free some space there"
            with pytest.raises(TraceError, match=why):
                trace_region(process, copy, region, 2, folder=small_disk)
        assert list(small_disk.iterdir()) == []
        assert process.registers() == before
        with process.fork() as copy:  # the parked program is as it was
            whole = trace_region(process, copy, region, 2, folder=tmp_path)
    assert whole.accesses >= 300_000
    assert (whole.truncated, whole.limits) == (False, ())


def test_regions_in_regions_are_told_by_the_threads_that_start_them(tmp_path: Path) -> None:
    program = build(tmp_path, "nested")
    body = next(f for f in ElfBinary.open(program).functions if is_region_body(f))
    seen = probe(
        [str(program)], team_entry(program, body), env={**with_threads(2), "OMP_MAX_ACTIVE_LEVELS": "2"}, timeout=60
    )
    assert (seen.calls, seen.threads) == (8 * 3, 2)


@pytest.mark.parametrize("flags", [("-O2",), ("-O3",), ("-O0",), ("-O2", "-no-pie", "-fno-pie")], ids=" ".join)
def test_a_body_whose_address_is_loaded_long_before_the_call(tmp_path: Path, flags: tuple[str, ...]) -> None:
    """gcc keeps it in a register across the calls of a loop; `omp_get_wtime` was taken for what it is passed to."""
    program = build(tmp_path, "hoisted", *flags)
    bodies = [f for f in ElfBinary.open(program).functions if is_region_body(f)]
    assert len(bodies) == 2
    assert [team_entry(program, body).symbol for body in bodies] == ["GOMP_parallel"] * 2


def test_tasks_are_refused_by_name(tmp_path: Path) -> None:
    program = build(tmp_path, "task")
    refused = []
    for body in (f for f in ElfBinary.open(program).functions if is_region_body(f)):
        try:
            team_entry(program, body)
        except TraceError as error:
            refused.append(error.why)
    assert refused == ["its body is passed to GOMP_task"]


def test_false_sharing_of_a_small_array_of_sums(tmp_path: Path) -> None:
    program = build(tmp_path, "false")
    trace = team_trace(program, 2, 2)
    sums = next(v for v in ElfBinary.open(program).variables if v.source_name == "sums").address + 0x555555554000
    found = find_sharing(trace)
    assert found.false == (sums // 64 * 64,) or found.false == (sums,)
    assert {trace.references[r].thread for r in found.users} == {0, 1}


def test_a_thread_beside_a_serial_hotspot_is_not_in_its_trace(tmp_path: Path) -> None:
    program = build(tmp_path, "beside")
    binary = ElfBinary.open(program)
    function = binary.find("hot")
    entry = Entry(program, function.start, binary.read(function.start, function.size), "hot")
    with park([str(program)], entry, 3, timeout=60) as process:
        trace = trace_call(process, binary.region(function, process.load_base), 3)
    assert trace.threads == ()
    assert cells_by_thread(trace, "write") == {0: list(range(N))}
    assert trace.accesses == 3 * N + 2  # and n, and the return address


def test_fields_are_counted_by_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    monkeypatch.setenv("OMP_DYNAMIC", "false")
    program, run = build(tmp_path, "static"), tmp_path / "run"
    body = body_of(ElfBinary.open(program)).name
    assert main(["trace", "-o", str(run), "--hotspot", body, "--until", "trace", "--", str(program)]) == 0
    cells = next(o for o in read_trace(find_trace(run)).objects if o.name == "cells")
    uses = {f.name: {u.thread: (u.reads, u.writes) for u in f.uses} for f in cells.fields}
    assert uses == {"x": {0: (500, 500), 1: (500, 500)}, "v": {0: (500, 0), 1: (500, 0)}}
    assert len({u.loop for f in cells.fields for u in f.uses} - {None}) == 1
    capsys.readouterr()
    assert main(["show", str(run)]) == 0
    text = capsys.readouterr().out
    for thread in (0, 1):
        assert f" by thread {thread} (500 reads, 500 writes)" in text
