"""The folded order of execution is the recorded one, and the loops of the code are those of an independent analysis."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from layout_advise.layoutalgebra.sets.nests import Loop, Point
from layout_advise.mockup.machine.cfg import build_cfg
from layout_advise.tracer.backends.clone.record import trace_call
from layout_advise.tracer.backends.step.single_steps import trace_by_steps
from layout_advise.tracer.code.code_loops import innermost, loops_of
from layout_advise.tracer.code.instructions import decode, references_of
from layout_advise.tracer.folding.execution_order import fold_control, of_kept, renumbered
from layout_advise.tracer.process.ptraced import PtracedProgram
from layout_advise.tracer.trace.trace import Control
from tests.support.clone_programs import build, region_of
from tests.support.tracing.parked_programs import parked
from tests.support.tracing.unfolding import partition, unfolded


def folded(sites: list[int], references: int) -> Control:
    addresses = np.arange(len(sites), dtype=np.uint64) * np.uint64(8)
    return fold_control(addresses | np.array(sites, dtype=np.uint64) << np.uint64(48), references)


@given(st.lists(st.integers(0, 11), min_size=1, max_size=120))
def test_any_short_order_comes_back(sites: list[int]) -> None:
    control = folded(sites, 12)
    partition(control, 12)
    assert control.nodes is None or unfolded(control) == sites


@given(
    st.lists(st.tuples(st.integers(0, 8), st.integers(1, 4), st.integers(1, 9)), min_size=1, max_size=6), st.integers(1, 30)
)
def test_loops_of_blocks_come_back(blocks: list[tuple[int, int, int]], sweeps: int) -> None:
    sweep = [site for first, length, times in blocks for _ in range(times) for site in range(first, first + length)]
    control = folded(sweep * sweeps, 13)
    partition(control, 13)
    assert unfolded(control) == sweep * sweeps


def test_a_nest_is_a_nest() -> None:
    sites = [0, *[site for _ in range(50) for site in [1, *[2, 3] * 40, 4]], 5]
    control = folded(sites, 6)
    assert control.pieces == ((0, 0), (1, 1), (2, 3), (4, 4), (5, 5))
    assert control.nodes is not None
    assert len(control.nodes) == 3
    outer = control.nodes[1]
    assert isinstance(outer, Loop)
    assert (outer.trip.const, len(outer.body)) == (50, 3)


def test_what_never_ran_is_in_no_piece_that_did() -> None:
    assert folded([0, 1, 2], 6).pieces == ((0, 2), (3, 5))
    assert folded([3, 4, 3, 4], 6).pieces == ((0, 2), (3, 4), (5, 5))


def test_an_irregular_order_is_left_out_with_the_reason() -> None:
    chance = random.Random(5)
    control = folded([chance.randrange(40) for _ in range(60_000)], 40)
    assert control.nodes is None
    assert control.reason == "the order of execution is irregular: it does not fold"
    seldom = folded([site for n in range(1500) for site in [0] * (chance.randrange(900) + 20) + [2]], 3)
    assert seldom.nodes is None
    assert "folds badly: " in (seldom.reason or "")


@pytest.mark.parametrize(
    ("name", "flags"), [("triangle", ("-O2",)), ("particles", ("-O3", "-march=haswell")), ("conditional", ("-O1",))]
)
def test_the_recorded_order_is_that_of_single_stepping(tmp_path: Path, name: str, flags: tuple[str, ...]) -> None:
    program = build(tmp_path, name, *flags)
    with PtracedProgram([str(program)]) as process:
        region = region_of(program, process.load_base(program))
        process.run_to(region.entry, 2)
        steps = trace_by_steps(process, region)
        numbers = {(r.pc, r.operand): r.id for r in references_of(decode(region))}
    with parked(program, 2) as stopped:
        control = trace_call(stopped, region_of(program, stopped.load_base), 2, folder=tmp_path).control
    assert control is not None
    assert unfolded(control) == [numbers[s.pc, s.operand] for s in steps]


@pytest.mark.parametrize("flags", [("-O1",), ("-O2",), ("-O3", "-march=haswell")])
@pytest.mark.parametrize("name", ["triangle", "particles", "conditional"])
def test_the_loops_are_those_of_the_lifter(tmp_path: Path, name: str, flags: tuple[str, ...]) -> None:
    program = build(tmp_path, name, *flags)
    region = region_of(program, 0)
    cfg = build_cfg(region)
    expected = {}
    for natural in cfg.loops:
        code = frozenset(insn.address for start in natural.blocks for insn in cfg.blocks[start].insns)
        expected[natural.head] = (natural.parent, code)
    found = loops_of(region)
    inside = [loop for loop in found if region.contains(loop.head)]
    mine = {loop.head: (None if loop.parent is None else found[loop.parent].head, loop.code) for loop in inside}
    reached = {insn.address for block in cfg.blocks.values() for insn in block.insns}
    assert {head: (parent, code & reached) for head, (parent, code) in mine.items()} == expected
    for loop in inside:
        number = innermost(found, loop.head)
        assert number is not None
        assert found[number].head == loop.head
        assert loop.depth == (0 if loop.parent is None else found[loop.parent].depth + 1)


@pytest.mark.parametrize("name", ["switch", "triangle", "conditional"])
def test_what_runs_twice_in_a_call_is_in_a_loop(tmp_path: Path, name: str) -> None:
    program = build(tmp_path, name, "-O2")
    with PtracedProgram([str(program)]) as process:
        region = region_of(program, process.load_base(program))
        process.run_to(region.entry, 2)
        steps = trace_by_steps(process, region)
    loops = loops_of(region)
    counts: dict[tuple[int, int], int] = {}
    for step in steps:
        if region.contains(step.pc):
            counts[step.pc, step.operand] = counts.get((step.pc, step.operand), 0) + 1
    assert max(counts.values()) > 2
    assert {pc for (pc, _), count in counts.items() if count > 1 and innermost(loops, pc) is None} == set()


@given(st.lists(st.integers(0, 11), min_size=1, max_size=80), st.sets(st.integers(0, 11)))
def test_the_order_of_some_references(sites: list[int], kept: set[int]) -> None:
    control, keep = folded(sites, 12), sorted(kept)
    found = of_kept(control, keep)
    partition(found, len(keep))
    assert (found.nodes is None) == (control.nodes is None)
    assert found.nodes is None or unfolded(found) == [keep.index(site) for site in sites if site in kept]


def test_references_with_other_numbers() -> None:
    control = folded([0, 1, 2, 0, 1, 2], 4)
    assert unfolded(renumbered(control, 7)) == [7, 8, 9, 7, 8, 9]


def test_pieces_are_points() -> None:
    control = folded([0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2], 3)
    assert control.nodes is not None
    assert isinstance(control.nodes[0], Loop)
    assert control.nodes[0].body == (Point(control.nodes[0].body[0].address),)  # type: ignore[union-attr]
