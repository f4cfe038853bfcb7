"""Words of the frame as variables: random loops in the interpreter, and what gcc makes of a frame that stays memory."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from layout_advise.layoutalgebra.derive.structure import Dim, Structure
from layout_advise.layoutalgebra.sets.nests import Affine, FoldedStream, Point
from layout_advise.mockup.evidence.binding import accesses, bind
from layout_advise.mockup.evidence.evidence import Evidence
from layout_advise.mockup.ir.effects import Gpr, Ty
from layout_advise.mockup.ir.lifted import (
    Goto,
    Imm,
    Item,
    Label,
    Let,
    LetLinear,
    Lifted,
    LiftedLoop,
    Linear,
    LiveIn,
    LiveOut,
    Load,
    OpaqueCall,
    Origin,
    Store,
    Val,
)
from layout_advise.mockup.ir.verify import verify_form
from layout_advise.mockup.lift.flow import RIP
from layout_advise.mockup.remap.plan import plan
from layout_advise.mockup.rewrite.frame_variables import RSP, frame_variables
from layout_advise.mockup.rewrite.handed_frame import handed_from
from layout_advise.tracer.trace.trace import Reference
from tests.support.lifting.run_lifted import run_lifted
from tests.support.mockups.case import Case, f64_fields, verify
from tests.support.mockups.native import candidate, relayout
from tests.support.mockups.small_memory import COUNTER, MEMORY_BYTES, MEMORY_START, SmallMemory, interpreted

STACK = Val(3, "i64")
ENTRY = MEMORY_START + 128
OUT = 160
"""From here on above the stack pointer what was loaded is stored."""

Kind = Ty | Literal["pair"]
Place = tuple[int, bool, Kind]
"""Bytes from the stack pointer, whether iterations go on by eight, the type, or a pair of i32 as one instruction has it."""
Step = tuple[bool, Place, bool]
TYPES: st.SearchStrategy[Kind] = st.sampled_from(("i64", "i64", "i32", "f64", "pair"))
PLACES = st.tuples(st.integers(-6, 12).map(lambda k: 4 * k), st.booleans(), TYPES)
NEAR = st.tuples(st.integers(-5, -3).map(lambda k: 4 * k), st.just(False), TYPES)
"""Places that share bytes."""
IN_TURN = st.tuples(NEAR, st.booleans()).map(lambda one: [(True, one[0], one[1]), (False, one[0], one[1])])
"""What is stored there and loaded again."""
STEPS = st.one_of(
    st.lists(st.tuples(st.booleans(), PLACES, st.booleans()), min_size=1, max_size=10),
    st.lists(IN_TURN, min_size=1, max_size=5).map(lambda some: [step for steps in some for step in steps]),
)
"""Whether it stores, where, and whether only from the third iteration on."""


def address(place: Place, part: int = 0) -> Linear:
    return Linear((place[0] + part) % (1 << 64), ((STACK, 1), (COUNTER, 8)) if place[1] else ((STACK, 1),))


def frame_loop(steps: list[Step], trips: int, is_loop: bool) -> Lifted:
    """A loop over such steps; of a function's loop the frame is there before and after."""
    body: list[Item] = []
    late = Val(10, "i1")
    body.append(Let(late, "slt", (COUNTER, Imm("i64", 2)), Origin(0x10)))
    for k, (stores, place, seldom) in enumerate(steps):
        pc, low = 0x100 + 16 * k, Val(20 + 3 * k, "i32")
        lanes: tuple[tuple[int, Ty], ...] = ((0, "i32"), (4, "i32")) if place[2] == "pair" else ((0, place[2]),)
        pack = pc if len(lanes) > 1 else None
        body += [Goto(k, late)] if seldom else []
        body += [Let(low, "trunc", (COUNTER,), Origin(pc))] if stores else []
        for lane, (part, ty) in enumerate(lanes):
            at, value = address(place, part), Val(21 + 3 * k + lane, ty)
            if stores:
                stored = {"i64": COUNTER, "i32": low, "f64": value}[ty]
                body += [Let(value, "bitcast", (COUNTER,), Origin(pc))] if ty == "f64" else []
                body.append(Store(ty, at, stored, Origin(pc + 1, pack, lane, 8), part=part))
            else:
                body.append(Load(value, at, Origin(pc, pack, lane, 8), part=part))
                body.append(Store(ty, address((OUT + 8 * k, False, "i64"), part), value, Origin(pc + 2 + lane)))
        body += [Label(k)] if seldom else []
    loop = LiftedLoop(COUNTER, Imm("i64", trips), tuple(body), 0x500)
    outs = (LiveOut(Imm("i64", 0x900), RIP),) if is_loop else ()
    return Lifted("f", 0x500, (LiveIn(STACK, RSP),), outs, (loop,))


@settings(max_examples=300, deadline=None)
@given(STEPS, st.integers(0, 5), st.booleans())
def test_it_computes_the_same(steps: list[Step], trips: int, is_loop: bool) -> None:
    data = np.arange(MEMORY_BYTES, dtype=np.uint8).tobytes()
    if not is_loop:  # what lies below the stack pointer is written before it is read, and is gone in the end
        steps = [(True, place, False) for stores, place, _ in steps if place[0] < 0 and not stores] + steps
    lifted = frame_loop(steps, trips, is_loop)
    before, after = SmallMemory(data), SmallMemory(data)
    trace = interpreted(lifted, {Gpr(4): ENTRY}, before)
    made = frame_variables(lifted, Evidence.of(trace, ()))
    verify_form(made, "frame_variables")
    event(f"changed: {made != lifted}")
    run_lifted(made, {Gpr(4): ENTRY}, after)
    first = 0 if is_loop else ENTRY - MEMORY_START
    assert after.data[first:] == before.data[first:]


def variables(steps: list[Step], *, is_loop: bool = True, called: tuple[int, ...] = ()) -> int:
    """How many accesses to the frame are left of a traced run of four iterations, of those to what they go to. ``called``:
    a call that stays a call writes there, so far from the stack pointer."""
    lifted = frame_loop(steps, 4, is_loop)
    trace = interpreted(lifted, {Gpr(4): ENTRY}, SmallMemory(bytes(MEMORY_BYTES)))
    if called:
        other = Reference(len(trace.references), 0x9000, 0, "write", 4)
        stream = FoldedStream(tuple(Point(Affine(ENTRY + at)) for at in called), len(called))
        trace = replace(trace, references=(*trace.references, other), streams=(*trace.streams, stream))
    made = frame_variables(lifted, Evidence.of(trace, ()))
    (loop,) = (item for item in made.body if isinstance(item, LiftedLoop))
    return sum(one.address.const < OUT or one.address.const > 1 << 32 for one in accesses(loop.body))


def test_what_other_accesses_reach_stays_memory() -> None:
    word: Place = (16, False, "i64")
    half: Place = (20, False, "i32")
    moving: Place = (0, True, "i64")
    assert variables([(False, word, False), (True, word, False)]) == 0
    assert variables([(False, word, False), (True, half, False)]) == 2
    assert variables([(False, word, False), (True, moving, False)]) == 2
    assert variables([(False, (40, False, "i64"), False), (True, moving, False)]) == 1
    assert variables([(True, (16, False, "i64"), False), (False, (16, False, "i32"), False)]) == 2


def test_what_is_stored_in_one_type_may_be_loaded_in_another() -> None:
    double: Place = (-16, False, "f64")
    bits: Place = (-16, False, "i64")
    for steps in ([(True, double, False), (False, bits, False)], [(True, bits, True), (False, double, False)]):
        assert [variables(steps), variables(steps, is_loop=False)] == [0, 0]
    assert variables([(False, double, False), (False, bits, False)]) == 0


def test_places_that_share_bytes_in_turn_are_variables_of_their_own() -> None:
    """fasttree keeps a double in a place of its frame and later a float: both stayed memory, and gcc made no vectors."""
    whole: Place = (-16, False, "i64")
    low: Place = (-16, False, "i32")
    high: Place = (-12, False, "i32")
    in_turn = [(True, whole, False), (False, whole, False), (True, low, False), (False, low, False)]
    assert variables(in_turn, is_loop=False) == 0
    assert variables(in_turn) == 0  # behind the loop the one's upper half stands there, and the other one
    assert variables([*in_turn, (True, high, False), (False, high, False)]) == 0
    assert variables([*in_turn, (False, high, False)]) == 5  # what the whole one wrote
    assert variables([(True, whole, False), (True, low, True), (False, low, False)], is_loop=False) == 3
    assert variables([(True, whole, False), (False, whole, False), (True, low, True)], is_loop=False) == 0
    assert variables([(True, whole, False), (False, whole, False), (True, low, True)]) == 3  # by the way that was taken


def test_lanes_of_packed_instructions_are_variables_or_all_memory() -> None:
    pair: Place = (-16, False, "pair")
    low: Place = (-16, False, "i32")
    assert variables([(True, pair, False), (False, pair, False)], is_loop=False) == 0
    assert variables([(True, pair, False), (False, low, False)], is_loop=False) == 0
    assert variables([(True, pair, False), (True, (-16, False, "i64"), True), (False, low, False)], is_loop=False) == 4
    # the other lane is no place's that shares bytes with what was stored whole, but it is of the same instruction
    assert variables([(True, (-12, False, "i64"), False), (False, pair, False)], is_loop=False) == 3


def test_what_a_call_reaches_stays_memory() -> None:
    word: Place = (16, False, "i64")
    assert [variables([(False, word, False)], called=(at,)) for at in (8, 12, 16, 20, 24)] == [0, 0, 1, 1, 0]
    assert variables([(False, word, False)], called=(-64, 64)) == 0  # as a copy in the heap and in another array


@pytest.mark.parametrize("stored", [False, True], ids=["handed", "stored"])
def test_what_calls_may_reach_of_which_no_trace_tells_stays_memory(stored: bool) -> None:
    """What lies behind a pointer that they are handed, or may find in memory: ripgrep's regular expressions hand a local on
    to a function that is not traced, which found nothing in it."""
    at, pointer, inner = 0x400, Val(40, "i64"), Val(41, "i64")
    plain = frame_loop([(True, (4 * k, False, "i64"), False) for k in (2, 4, 6)], 4, True)
    made = LetLinear(pointer, Linear(8, ((STACK, 1),)), Origin(0x380))
    further = LetLinear(inner, Linear(8, ((pointer, 1),)), Origin(0x381))
    kept: Item = Store("i64", address((OUT, False, "i64")), inner, Origin(0x382))
    call = OpaqueCall(None, Imm("i64", 0x9000), None, () if stored else ((Gpr(7), inner),), Origin(at))
    lifted = replace(plain, body=(made, further, *((kept,) if stored else ()), call, *plain.body))
    assert handed_from(lifted, STACK, ()) is None
    assert handed_from(lifted, STACK, {at}) == 16
    trace = interpreted(plain, {Gpr(4): ENTRY}, SmallMemory(bytes(MEMORY_BYTES)))
    for unseen, left in (((), 0), ((at,), 2)):
        found = frame_variables(lifted, Evidence.of(trace, ()), unseen)
        (loop,) = (item for item in found.body if isinstance(item, LiftedLoop))
        assert len(list(accesses(loop.body))) == left


def test_what_a_function_never_wrote_stays_memory() -> None:
    """A word below the stack pointer of its entry holds nothing then."""
    assert variables([(False, (-8, False, "i64"), False)], is_loop=False) == 1
    assert variables([(False, (-8, False, "i64"), False)]) == 0


SPILLED = """
struct cell {{ double x, y, rest; }};
double sum(struct cell *cells, const int *order, long n, double *out) {{
    long count[4] = {{0}};
    struct cell *volatile saved = cells;
    volatile double total = 0;
    for (long i = 0; i < n; i++) {{
        count[order[i] & 3]++;
        {more}
        total = total + saved[order[i]].x * saved[order[i]].y;
        saved[order[i]].x = count[1] - count[2];
    }}
    out[0] = total + count[0];
    out[1] = count[3];
    return 0;
}}"""
COUNT = 40


def spilled(more: str, folder: Path) -> tuple[Case, Structure]:
    case = Case(SPILLED.format(more=more), "sum", ("-O2",), folder)
    cells, order = np.random.default_rng(1).random((COUNT, 3)), np.random.default_rng(2).permutation(COUNT).astype(np.int32)
    case.arrays = [cells, order, np.zeros(2)]
    case.integers = [cells.ctypes.data, order.ctypes.data, COUNT, case.arrays[2].ctypes.data]
    shape = Structure("s0", "cells", cells.ctypes.data, cells.nbytes, (Dim(COUNT, 24),), f64_fields(("x", 0), ("y", 8)))
    case.structures = (shape,)
    case.prepare()
    return case, shape


@pytest.mark.parametrize("family", ["soa", "aosoa"])
@pytest.mark.parametrize("more", ["", "if (order[i] == 7) saved = cells;", "if (order[i] < 0) total = 0;"])
def test_of_a_frame_with_an_array(more: str, family: str, tmp_path: Path) -> None:
    case, shape = spilled(more, tmp_path)
    evidence = Evidence.of(case.trace, case.structures)
    before = len(list(accesses(case.lifted.body)))
    case.lifted = frame_variables(case.lifted, evidence)
    verify_form(case.lifted, "frame_variables")
    assert len(list(accesses(case.lifted.body))) < before - 3
    verify(case, candidate(relayout(shape, family)))


def test_a_saved_pointer_is_divided_before_the_loop(tmp_path: Path) -> None:
    case, shape = spilled("", tmp_path)
    lifted = frame_variables(case.lifted, Evidence.of(case.trace, case.structures))
    placed = plan(lifted, candidate(relayout(shape, "soa")), bind(lifted, case.trace, case.structures))
    (loop,) = (item for item in lifted.body if isinstance(item, LiftedLoop))
    assert {uid for uid, found in placed.sites.items() if found} == {loop.uid}
