# ruff: noqa: E501  (C source, a line a statement list)
"""What hotspots do within the traced call but read and write: the clone and Valgrind trace it alike and rightly, or refuse."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from layout_advise.cli import main
from layout_advise.errors import TraceError
from layout_advise.observe.annotate import annotated
from layout_advise.observe.observe import Observation, observed
from layout_advise.tracer.backends.clone.record import trace_call
from layout_advise.tracer.backends.protocol import Rerun, TracedCall
from layout_advise.tracer.backends.step.record import StepBackend
from layout_advise.tracer.backends.valgrind.record import ValgrindBackend
from layout_advise.tracer.code.region import Region
from layout_advise.tracer.program.binary import ElfBinary
from layout_advise.tracer.snapshot.park import park
from layout_advise.tracer.trace.trace import Trace
from tests.support.tracing.trace_requests import request
from tests.support.tracing.window_programs import LOOP, MAIN, PROGRAMS, accessed, compiled


def traces(
    folder: Path, text: str, call: int, patience: float = 60
) -> tuple[Trace | TraceError, TracedCall, ElfBinary, int]:
    """By the clone, which may refuse, and under Valgrind; the program, and where it was loaded. The clone has ``patience``
    seconds."""
    program, binary, entry = compiled(folder, text)
    work = folder / "work"
    work.mkdir()
    with park([str(program)], entry, call, timeout=60, command_timeout=patience) as parked:
        region = binary.region(binary.find("hot"), parked.load_base, callees=True)
        clone: Trace | TraceError
        try:
            clone = trace_call(parked, region, call, folder=work)
        except TraceError as error:
            clone = error
        found = ValgrindBackend().trace(
            request(parked, region, Rerun([str(program)], entry, call, 1 << 40, folder=work, timeout=60))
        )
        base = parked.load_base
        assert parked.registers().rip == region.entry  # it is as it was
    assert not list(work.iterdir())
    return clone, found, binary, base


@pytest.mark.parametrize(
    ("name", "call", "data", "elsewhere"),
    [
        ("recursion", 3, 101 + 1 + 2, 0),
        ("fork", 2, 101, 0),
        ("descriptors", 2, 101, 0),
        ("three bytes", 2, 1, 0),
        ("mapped", 2, 101 + 101 + 1, 101),
        ("unmapped", 2, 101, 202),
        ("moved", 2, 101, 202),
        ("freed", 2, 101, 202),
    ],
)
def test_the_clone_and_valgrind_agree(tmp_path: Path, name: str, call: int, data: int, elsewhere: int) -> None:
    clone, found, binary, base = traces(tmp_path, PROGRAMS[name], call)
    assert isinstance(clone, Trace)
    expected = {"data": data, "other": 0, "elsewhere": elsewhere}
    assert accessed(clone, binary, base) == expected
    assert accessed(found.trace, binary, base) == expected
    assert not clone.truncated
    assert (clone.others, found.trace.others) == (False, False)
    assert found.trace.watched
    assert [(a.order, a.bytes) for a in found.trace.born] == [(a.order, a.bytes) for a in clone.born]
    assert found.trace.freed == clone.freed
    # what the call itself mapped is not in the parked program: that is said, and such addresses are none of its own
    assert bool(found.notes) == (name in ("mapped", "unmapped", "moved", "freed"))


def seen_in(folder: Path, text: str) -> tuple[Observation, ElfBinary]:
    """The second call as the later stages see it."""
    program, binary, entry = compiled(folder, text)
    with park([str(program)], entry, 2, timeout=60) as parked:
        region = binary.region(binary.find("hot"), parked.load_base, callees=True)
        trace = trace_call(parked, region, 2, folder=folder)
        return observed(parked, binary, region, trace), binary


def heap_of(seen: Observation, binary: ElfBinary) -> list[tuple[str, int, str | None, int | None]]:
    """Name, size, life and accesses of the heap blocks that the call touches."""
    found = annotated(seen, binary).objects
    return [(o.name, o.bytes, o.life, o.accesses) for o in found if o.kind in ("heap", "mapped")]


def test_a_block_that_the_call_frees_has_no_counts_and_no_layout(tmp_path: Path) -> None:
    seen, binary = seen_in(tmp_path, PROGRAMS["freed"])
    (new,) = seen.trace.born
    old = next(a for a in seen.trace.allocations if a.order in seen.trace.freed)
    assert (new.address, new.bytes) == (old.address, old.bytes)  # the allocator gives the same memory again
    assert heap_of(seen, binary) == [("p", 8000, "freed", None)]
    (structure,) = (d for d in seen.derived if d.structure.kind == "heap")
    assert structure.term is None
    assert structure.structure.inexact == "it touches a block that the call frees, and what else the call then puts there"


def test_what_the_call_allocates_is_no_part_of_the_heap_at_large(tmp_path: Path) -> None:
    text = PROGRAMS["freed"].replace("free(p); p = (long *)malloc(8000)", "p = (long *)malloc(4000)")
    seen, binary = seen_in(tmp_path, text)
    (new,) = seen.trace.born
    assert heap_of(seen, binary) == [("p", 4000, "whole", 101), (f"heap block {new.order}", 4000, "born", 101)]
    assert [d.structure.name for d in seen.derived if d.structure.kind == "heap"] == ["p"]


def test_a_block_that_moves_is_two(tmp_path: Path) -> None:
    seen, binary = seen_in(tmp_path, PROGRAMS["moved"])
    (new,) = seen.trace.born
    (old,) = (a for a in seen.trace.allocations if a.order in seen.trace.freed)
    found = heap_of(seen, binary)
    expected: list[tuple[str, int, str | None, int | None]] = [("p", 1_600_000, "freed", None)]
    if new.address != old.address:  # not grown in its place
        expected.append((f"heap block {new.order}", 2_400_000, "born", 101))
    assert sorted(found, key=lambda o: o[1]) == expected
    assert all(d.term is None for d in seen.derived if d.structure.kind in ("heap", "mapped"))


@pytest.fixture
def told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Callable[[str], tuple[str, str]]:
    """A function that traces the second call of a program: what ``trace`` says on standard error, what ``show`` prints."""

    def run(name: str) -> tuple[str, str]:
        compiled(tmp_path, PROGRAMS[name])
        monkeypatch.chdir(tmp_path)
        assert main(["trace", "-f", "-o", "run", "--until", "trace", "--hotspot", "hot", "--call", "2", "--", "./p"]) == 0
        said = capfd.readouterr().err
        assert main(["show", "run"]) == 0
        return said, capfd.readouterr().out

    return run


@pytest.mark.slow
def test_show_tells_what_becomes_of_the_heap(told: Callable[[str], tuple[str, str]]) -> None:
    _, said = told("freed")
    (facts,) = (text for text in said.splitlines() if text.startswith("  p: heap block "))
    assert facts.endswith(", freed in the call")
    assert "     accesses not told apart from those to what the call put in its place in 0x" in said
    line = "the call leaves 1 block of 8,000 bytes behind that it allocated, and frees 1 block of those before it"
    assert f"\n  {line}\n" in said


LEFT_RUNNING = f"static void *work(void *) {{ pause(); return 0; }} {LOOP} pthread_t t; pthread_create(&t, 0, work, 0); }} int main() {{ {MAIN}"


@pytest.mark.parametrize("text", [PROGRAMS["starts inside"], LEFT_RUNNING])
def test_threads_that_the_call_starts_are_told_of(tmp_path: Path, text: str) -> None:
    program, binary, entry = compiled(tmp_path, text)
    with park([str(program)], entry, 2, timeout=60) as parked:
        base = parked.load_base

        def region_at(at: int) -> Region:
            return binary.region(binary.find("hot"), at, callees=True)

        clone = trace_call(parked, region_at(base), 2, folder=tmp_path)
        step = StepBackend().trace(request(parked, region_at, Rerun([str(program)], entry, 2, 100_000))).trace
    for trace in (clone, step):
        assert accessed(trace, binary, base) == {"data": 101, "other": 0, "elsewhere": 0}
        assert (trace.others, trace.truncated) == (True, False)


def test_a_call_that_waits_for_another_thread_has_no_clone(tmp_path: Path) -> None:
    clone, found, binary, base = traces(tmp_path, PROGRAMS["threads"], 2, patience=3)
    assert isinstance(clone, TraceError)
    assert str(clone) == (
        "no clone of hot: the traced call did not return (no answer within 3 s): it may wait for another thread, and a fork "
        "has none; use --backend valgrind"
    )
    assert accessed(found.trace, binary, base)["data"] == 101
    assert found.trace.others


@pytest.mark.slow
def test_the_command_tells_of_threads_that_are_not_traced(told: Callable[[str], tuple[str, str]]) -> None:
    errors, shown = told("starts inside")
    said = "other threads ran during the call; their accesses are not in the trace"
    assert [text for text in errors.splitlines() if "other thread" in text] == [f"layout-advise: {said}"]
    first, second, *_ = shown.splitlines()
    assert first.endswith(", one thread only (backend clone)")
    assert second == f"not whole: {said}"


def test_a_signal_handler_is_none_of_the_hotspots_code(tmp_path: Path) -> None:
    clone, found, binary, base = traces(tmp_path, PROGRAMS["signal"], 2)
    assert isinstance(clone, Trace)
    assert accessed(clone, binary, base)["data"] == 101
    assert accessed(found.trace, binary, base)["data"] == 101 + 1  # Valgrind sees the handler, too


@pytest.mark.parametrize(
    ("name", "why", "data"),
    [
        ("exception", "killed by SIGABRT", 101),
        ("caught within", "killed by SIGABRT", 101 + 2),
        ("longjmp", "it ends there, or leaves by an exception or longjmp", 101),
        ("exit", "exit status 3", 101),
    ],
)
def test_a_call_that_does_not_return_has_no_clone(tmp_path: Path, name: str, why: str, data: int) -> None:
    clone, found, binary, base = traces(tmp_path, PROGRAMS[name], 2)
    assert isinstance(clone, TraceError)
    assert clone.what == "no clone of hot"  # with --backend auto: Valgrind takes over
    assert why in str(clone)
    assert "the program died in the traced call" in str(clone)
    assert accessed(found.trace, binary, base)["data"] == data


def test_an_exception_that_stays_in_code_outside_the_set_is_nobodys_business(tmp_path: Path) -> None:
    caught = (
        "static int compare(const void *, const void *) { try { throw 1L; } catch (long x) { data[998] = x; } return 0; }"
    )
    text = f"{caught} {LOOP} long pair[2] = {{2, 1}}; qsort(pair, 2, 8, compare); data[999] = 1; }} int main() {{ {MAIN}"
    program, binary, entry = compiled(tmp_path, text)
    with park([str(program)], entry, 2, timeout=60) as parked:
        region = binary.region(binary.find("hot"), parked.load_base, callees=True)
        assert [c.symbol for c in region.callees] == []  # libc calls it, through a pointer
        trace = trace_call(parked, region, 2, folder=tmp_path)
        base = parked.load_base
    assert accessed(trace, binary, base)["data"] == 101 + 1
    assert not trace.truncated
