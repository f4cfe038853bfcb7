"""Pointers that loops load again and again are what they were before the loop: random loops in the interpreter, and what gcc
makes of vectors whose elements it cannot tell from their own pointers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from layout_advise.layoutalgebra.derive.structure import Dim, Structure
from layout_advise.mockup.evidence.evidence import Evidence
from layout_advise.mockup.ir.effects import Gpr
from layout_advise.mockup.ir.lifted import (
    Assign,
    Goto,
    Imm,
    Item,
    Label,
    Let,
    Lifted,
    LiftedLoop,
    Linear,
    LiveIn,
    Load,
    Operand,
    Origin,
    Store,
    Val,
    Var,
    everything,
)
from layout_advise.mockup.rewrite.hoist_pointer_loads import hoist_pointer_loads
from layout_advise.mockup.rewrite.passes import run_passes
from tests.support import slower
from tests.support.lifting.run_lifted import run_lifted
from tests.support.mockups.case import Case, f64_fields, verify
from tests.support.mockups.native import candidate, relayout
from tests.support.mockups.small_memory import COUNTER, MEMORY_START, POINTER, SmallMemory, interpreted

HEADER = 256
FIRST, HEAD, MERGED = Val(200, "i64"), Var(100, "i64"), Var(101, "i64")


def through(pointer: Operand, step: int) -> Linear:
    """The address of the loop's element behind a pointer."""
    return Linear(0, ((pointer, 1), (COUNTER, step)))


def reloading(target: tuple[int, int], taken: int, *, header: tuple[int, int] = (HEADER, HEADER), trips: int = 4) -> Lifted:
    """``p = *header; for k: x = p[k]; if (taken <= k) p = *header; p[k] = 2 x; target[k] = p; p = *header``. ``target`` is
    (where, how far an iteration moves it): it may be the header, or an element. ``header`` are the places that are loaded
    from before the loop and at its end."""
    again, late, x, twice, other = Val(201, "i64"), Val(202, "i64"), Val(203, "f64"), Val(204, "f64"), Val(205, "i1")
    stored = Val(206, "i64")
    body: tuple[Item, ...] = (
        Load(x, through(HEAD, 8), Origin(0x20)),
        Assign(MERGED, HEAD, 1),
        Let(other, "slt", (COUNTER, Imm("i64", taken)), Origin(0x21)),
        Goto(7, other),
        Load(again, Linear(MEMORY_START + HEADER), Origin(0x22)),
        Assign(MERGED, again, 2),
        Label(7),
        Let(twice, "fadd", (x, x), Origin(0x23)),
        Store("f64", through(MERGED, 8), twice, Origin(0x24)),
        Let(stored, "add", (MERGED, Imm("i64", 8)), Origin(0x25)),
        Store("i64", Linear(MEMORY_START + target[0], ((COUNTER, target[1]),)), stored, Origin(0x26)),
        Load(late, Linear(MEMORY_START + header[1]), Origin(0x27)),
        Assign(HEAD, late, 3),
    )
    before: tuple[Item, ...] = (Load(FIRST, Linear(MEMORY_START + header[0]), Origin(0x10)), Assign(HEAD, FIRST, 0))
    loop = LiftedLoop(COUNTER, Imm("i64", trips), body, 0x500)
    return Lifted("f", 0x500, (LiveIn(POINTER, Gpr(7)),), (), (*before, loop))


def memory() -> bytes:
    """Doubles, and two places that hold pointers to the first of them."""
    words = np.arange(64, dtype=np.float64)
    words.view(np.int64)[[HEADER // 8, HEADER // 8 + 1]] = MEMORY_START
    return words.tobytes()


def bases(lifted: Lifted) -> set[Operand]:
    """What the loop's addresses begin with."""
    loops = [item for item in everything(lifted.body) if isinstance(item, LiftedLoop)]
    found = [i.address.terms for loop in loops for i in loop.body if isinstance(i, Load | Store)]
    return {atom for terms in found for atom, _ in terms} - {COUNTER}


@settings(max_examples=200, deadline=None)
@given(
    st.tuples(st.integers(0, 40).map(lambda k: 8 * k), st.sampled_from((0, 8, 16))),
    st.integers(0, 5),
    st.sampled_from(((HEADER, HEADER), (HEADER, HEADER + 8))),
    st.integers(0, 4),
)
def test_it_computes_the_same(target: tuple[int, int], taken: int, header: tuple[int, int], trips: int) -> None:
    lifted = reloading(target, taken, header=header, trips=trips)
    before, after = SmallMemory(memory()), SmallMemory(memory())
    trace = interpreted(lifted, {Gpr(7): MEMORY_START}, before)
    steady = hoist_pointer_loads(lifted, Evidence.of(trace, ()))
    event(f"steady: {bases(steady) == {FIRST}}")
    run_lifted(steady, {Gpr(7): MEMORY_START}, after)
    assert after.data == before.data


def repointed(lifted: Lifted) -> set[Operand]:
    """The pointers that are left after a traced run."""
    return bases(
        hoist_pointer_loads(lifted, Evidence.of(interpreted(lifted, {Gpr(7): MEMORY_START}, SmallMemory(memory())), ()))
    )


def test_both_the_variable_and_what_a_branch_makes_of_it() -> None:
    for taken in (0, 2, 9):  # on both ways, and on one that is never taken
        assert repointed(reloading((400, 8), taken)) == {FIRST}


def test_a_pointer_that_is_stored_to_or_comes_from_elsewhere_stays() -> None:
    assert repointed(reloading((HEADER - 8, 8), 2)) == {HEAD, MERGED}
    assert repointed(reloading((400, 8), 2, header=(HEADER, HEADER + 8))) == {HEAD, MERGED}


VECTORS = """
typedef double __attribute__((may_alias)) any;
struct bone { double x, y, s; };
struct vector { struct bone *begin, *end; };
void blend(const struct vector *a, struct vector *out, long n) {
    for (long i = 0; i < n; i++) {
        double r = a->begin[i].x * a->begin[i].y + out->begin[i].s;
        *(any *)&out->begin[i].x = r;
        out->begin[i].y = a->begin[i].y + r;
    }
}
void branching(const struct vector *a, struct vector *out, long n) {
    for (long i = 0; i < n; i++) {
        double r = a->begin[i].x * a->begin[i].y - out->begin[i].s;
        if (r < 0.0) r = 0.0;
        else *(any *)&out->begin[i].x = r;
        out->begin[i].y = a->begin[i].y + r;
    }
}"""


@pytest.mark.parametrize(
    ("which", "flags"),
    [
        (0, ("-O2",)),
        *slower((0, ("-O3", "-march=haswell")), (1, ("-O2",))),
        (1, ("-O3", "-march=haswell")),
    ],
)
@pytest.mark.parametrize("family", ["aosoa", *slower(("soa",))])
@pytest.mark.parametrize("symbol", ["blend", "branching"])
def test_of_vectors(symbol: str, flags: tuple[str, ...], which: int, family: str, tmp_path: Path) -> None:
    case = Case(VECTORS, symbol, flags, tmp_path)
    random = np.random.default_rng(3)
    data = [random.random((40, 3)), random.random((40, 3))]
    headers = [np.array([d.ctypes.data, d.ctypes.data + d.nbytes], np.int64) for d in data]
    case.arrays, case.integers = [*data, *headers], [headers[0].ctypes.data, headers[1].ctypes.data, 40]
    fields = f64_fields(("x", 0), ("y", 8), ("s", 16))
    case.structures = tuple(
        Structure(f"s{k}", name, d.ctypes.data, d.nbytes, (Dim(40, 24),), fields)
        for k, (name, d) in enumerate(zip(("a", "out"), data, strict=True))
    )
    case.prepare()
    steady = run_passes(case.lifted, Evidence.of(case.trace, case.structures), (hoist_pointer_loads,), verify=True)
    assert steady != case.lifted  # else nothing is tested
    case.lifted = steady
    verify(case, candidate(relayout(case.structures[which], family)))
