"""Which heap blocks come and go in a call: the same by all backends that tell, and nothing where it is not known."""

from __future__ import annotations

import subprocess
from functools import partial
from pathlib import Path

import pytest

from layout_advise.tracer.backends.clone.record import trace_call
from layout_advise.tracer.backends.protocol import Rerun
from layout_advise.tracer.backends.step.record import StepBackend
from layout_advise.tracer.backends.valgrind.record import ValgrindBackend
from layout_advise.tracer.backends.valgrind.run import run_tool
from layout_advise.tracer.folding.relocate import NOWHERE, Process
from layout_advise.tracer.objects.lifetimes import translated
from layout_advise.tracer.trace.trace import Allocation, Mapping, Registers
from tests.support.clone_programs import region_of
from tests.support.tracing.parked_programs import HEAP, MANY, entry_of, parked
from tests.support.tracing.trace_requests import request


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("heap")
    (folder / "heap.c").write_text(HEAP)
    subprocess.run(["gcc", "-O1", "-g", "-o", "heap", "heap.c"], cwd=folder, check=True)
    return folder / "heap"


def test_all_backends_tell_the_same(program: Path, tmp_path: Path) -> None:
    with parked(program, 1) as process:
        region = region_of(program, process.load_base)
        clone = trace_call(process, region, 1, folder=tmp_path)
        asked = request(process, partial(region_of, program), Rerun([str(program)], entry_of(program), 1, MANY, timeout=60))
        valgrind, step = (backend.trace(asked).trace for backend in (ValgrindBackend(), StepBackend()))
    assert len(clone.freed) == 2
    for other in (valgrind, step):
        assert other.watched
        assert other.freed == clone.freed
        assert [(a.order, a.bytes) for a in other.born] == [(a.order, a.bytes) for a in clone.born]
        assert all(region.contains(a.site) for a in other.born)


def test_a_trace_that_was_cut_does_not_tell(program: Path) -> None:
    assert run_tool(Rerun([str(program)], entry_of(program), 1, MANY)).after is not None
    assert run_tool(Rerun([str(program)], entry_of(program), 1, 3)).after is None
    assert run_tool(Rerun([str(program)], entry_of(program), 1, MANY), preload=False).after is None


def process_with(*blocks: Allocation, at: int = 0) -> Process:
    moved = tuple(Allocation(a.address + at, a.bytes, a.order, a.site) for a in blocks)
    mappings = (Mapping(0x1000, 0x2000, "r-xp", 0, "/p"), Mapping(0x10000 + at, 0x40000 + at, "rw-p", 0, "[heap]"))
    return Process(mappings, moved, Registers((0,) * 16, 0, 0, 0, 0))


ONE, TWO = Allocation(0x10010, 64, 0, 0x1100), Allocation(0x20010, 64, 1, 0x1104)
NEW = Allocation(0x10040, 100, 2, 0x1108)  # begins on the first, which is freed


def test_new_blocks_are_beyond_all_memory() -> None:
    source, target = process_with(ONE, TWO), process_with(ONE, TWO, at=1 << 20)
    far = Allocation(0x30000, 8, 3, 0)
    to, lives = translated(source, target, (TWO, NEW, far))
    assert (lives.watched, lives.freed) == (True, (0,))
    assert lives.born == (
        Allocation(NEW.address + NOWHERE, 100, 2, 0x1108),
        Allocation(far.address + NOWHERE, 8, 3, 0),
    )
    assert to.address(0x1004F) == 0x1004F + (1 << 20)  # the old block's
    assert to.address(0x10050) == 0x10050 + NOWHERE
    assert to.address(0x20010) == 0x20010 + (1 << 20)


def test_nothing_is_told_of_processes_with_other_blocks() -> None:
    source = process_with(ONE, TWO)
    for target in (process_with(ONE), process_with(ONE, Allocation(0x20010, 72, 1, 0x1104))):
        assert not translated(source, target, (TWO,))[1].watched
    assert not translated(process_with(ONE), source, (ONE,))[1].watched
    assert not translated(source, source, None)[1].watched
