"""Words of the frame as variables: random loops in the interpreter, and what gcc makes of a frame that stays memory."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

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

Place = tuple[int, bool, Ty]
"""Bytes from the stack pointer, whether iterations go on by eight, the type."""
Step = tuple[bool, Place, bool]
PLACES = st.tuples(st.integers(-6, 12).map(lambda k: 4 * k), st.booleans(), st.sampled_from(("i64", "i64", "i32")))
STEPS = st.lists(st.tuples(st.booleans(), PLACES, st.booleans()), min_size=1, max_size=10)
"""Whether it stores, where, and whether only from the third iteration on."""


def address(place: Place) -> Linear:
    return Linear(place[0] % (1 << 64), ((STACK, 1), (COUNTER, 8)) if place[1] else ((STACK, 1),))


def frame_loop(steps: list[Step], trips: int, is_loop: bool) -> Lifted:
    """A loop over such steps; of a function's loop the frame is there before and after."""
    body: list[Item] = []
    late = Val(10, "i1")
    body.append(Let(late, "slt", (COUNTER, Imm("i64", 2)), Origin(0x10)))
    for k, (stores, place, seldom) in enumerate(steps):
        at, pc = address(place), 0x100 + 16 * k
        body += [Goto(k, late)] if seldom else []
        if stores:
            low = Val(20 + 3 * k, "i32")
            body.append(Let(low, "trunc", (COUNTER,), Origin(pc)))
            body.append(Store(place[2], at, COUNTER if place[2] == "i64" else low, Origin(pc + 1)))
        else:
            value = Val(20 + 3 * k, place[2])
            body.append(Load(value, at, Origin(pc)))
            body.append(Store(place[2], address((OUT + 8 * k, False, "i64")), value, Origin(pc + 1)))
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


def variables(steps: list[Step], *, is_loop: bool = True, called: int | None = None) -> int:
    """How many accesses to the frame are left of a traced run of four iterations, of those to what they go to. ``called``:
    a call that stays a call writes there, so far from the stack pointer."""
    lifted = frame_loop(steps, 4, is_loop)
    trace = interpreted(lifted, {Gpr(4): ENTRY}, SmallMemory(bytes(MEMORY_BYTES)))
    if called is not None:
        other = Reference(len(trace.references), 0x9000, 0, "write", 4)
        stream = FoldedStream((Point(Affine(ENTRY + called)),), 1)
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


def test_what_a_call_reaches_stays_memory() -> None:
    word: Place = (16, False, "i64")
    assert [variables([(False, word, False)], called=at) for at in (8, 12, 16, 20, 24)] == [0, 0, 1, 1, 0]


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
