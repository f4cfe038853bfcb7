"""Tracing through the real agent: in a fork of a parked program, the same accesses as by single-stepping without it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from layout_advise.layoutalgebra.sets.nests import FoldedStream
from layout_advise.tracer.backends.clone.record import trace_call
from layout_advise.tracer.backends.step.single_steps import trace_by_steps
from layout_advise.tracer.process.ptraced import PtracedProgram
from tests.support.clone_programs import build, region_of
from tests.support.tracing.parked_programs import HEAP, parked

GLOBALS = 1 << 20
"""Code and globals of the small programs end before this distance from the load base."""


@pytest.mark.parametrize(
    ("name", "flags"), [("triangle", ("-O2",)), ("switch", ("-O2",)), ("gather", ("-O3", "-march=haswell"))]
)
def test_the_agents_trace_is_that_of_single_stepping(tmp_path: Path, name: str, flags: tuple[str, ...]) -> None:
    program = build(tmp_path, name, *flags)
    with PtracedProgram([str(program)]) as process:
        base = process.load_base(program)
        region = region_of(program, base)
        process.run_to(region.entry, 2)
        steps = [(s.pc - base, s.operand, s.address - base) for s in trace_by_steps(process, region)]
    with parked(program, 2) as process:
        base = process.load_base
        trace = trace_call(process, region_of(program, base), 2, folder=tmp_path)
        again = trace_call(process, region_of(program, base), 2, folder=tmp_path)
    assert trace.streams == again.streams
    assert trace.accesses == len(steps)
    compared = 0
    for reference, stream in zip(trace.references, trace.streams, strict=True):
        assert stream is None or isinstance(stream, FoldedStream)
        mine = [a - base for a in stream.expand()] if stream else []
        theirs = [a for pc, operand, a in steps if (pc, operand) == (reference.pc - base, reference.operand)]
        assert len(mine) == len(theirs)
        if all(0 <= a < GLOBALS for a in theirs):  # the stack is elsewhere with an agent
            assert mine == theirs
            compared += len(mine)
    assert compared > len(steps) // 2


def test_a_full_buffer_is_reported_and_the_parked_program_unchanged(tmp_path: Path) -> None:
    with parked(build(tmp_path, "particles", "-O2"), 1) as process:
        base = process.load_base
        before = process.registers()
        cut = trace_call(process, region_of(tmp_path / "particles", base), 1, cap=200, folder=tmp_path)
        whole = trace_call(process, region_of(tmp_path / "particles", base), 1, folder=tmp_path)
        assert process.registers() == before
    assert cut.truncated
    assert not whole.truncated
    assert cut.accesses <= 200 < whole.accesses


def test_the_calls_own_blocks_are_told(tmp_path: Path) -> None:
    (tmp_path / "heap.c").write_text(HEAP)
    subprocess.run(["gcc", "-O1", "-g", "-o", "heap", "heap.c"], cwd=tmp_path, check=True)
    program = tmp_path / "heap"
    for _ in range(2):  # watching leaves nothing in the parked program
        with parked(program, 1) as process:
            before = {a.order: a.bytes for a in process.allocations()}
            for _ in range(2):
                trace = trace_call(process, region_of(program, process.load_base), 1, folder=tmp_path)
                assert trace.watched
                assert sorted(a.bytes for a in trace.born) == [777, 300_004]
                assert sorted(before[order] for order in trace.freed) == [64, 333]
                assert {a.order: a.bytes for a in trace.allocations} == before
                assert min(a.order for a in trace.born) > max(before)
