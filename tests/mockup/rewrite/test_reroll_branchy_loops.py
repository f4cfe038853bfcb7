"""Loops with branches that were unrolled become loops over single elements, and compute the same: random copies in the
interpreter, and what clang makes of such loops on the processor."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from layout_advise.layoutalgebra.derive.structure import Dim, Field, Structure
from layout_advise.mockup.evidence.evidence import Evidence
from layout_advise.mockup.ir.effects import Gpr
from layout_advise.mockup.ir.lifted import (
    Assign,
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
    Operand,
    Origin,
    Store,
    Val,
    Var,
    everything,
)
from layout_advise.mockup.rewrite.passes import run_passes
from layout_advise.mockup.rewrite.reroll import reroll
from tests.support import slower
from tests.support.lifting.run_lifted import run_lifted
from tests.support.mockups.case import Case, verify
from tests.support.mockups.native import candidate, relayout
from tests.support.mockups.small_memory import COUNTER, MEMORY_START, POINTER, SmallMemory, interpreted

STRIDE, TRIPS = 24, 4


@dataclass
class Writer:
    """Writes copies of one random iteration: a test, what is stored where it holds, a sum or a value that is handed on."""

    count: int
    shape: random.Random
    handed: str
    odd: str
    number: int = 100
    items: list[Item] = field(default_factory=list)

    def fresh(self) -> int:
        self.number += 1
        return self.number

    def value(self, name: str, *args: Operand) -> Val:
        found = Val(self.fresh(), "i1" if name in ("eq", "slt") else "i64")
        swapped = args[::-1] if name in ("add", "and", "eq") and self.shape.random() < 0.3 else args
        self.items.append(Let(found, name, swapped, Origin(self.fresh())))
        return found

    def load(self, at: int) -> Val:
        found = Val(self.fresh(), "i64")
        self.items.append(Load(found, Linear(at, ((POINTER, 1), (COUNTER, STRIDE * self.count))), Origin(self.fresh())))
        return found

    def copy(self, k: int, plan: random.Random, before: Operand) -> Operand:
        """One iteration; returns what it hands on."""
        here = STRIDE * k + (8 if self.odd == "address" and k == self.count - 1 else 0)
        skip, end, after = self.fresh(), self.fresh(), Var(self.fresh(), "i64")
        first = self.load(here)
        mask = plan.choice((1, 2, 6)) + (1 if self.odd == "constant" and k == 1 else 0)
        test = self.value("eq", self.value("and", first, Imm("i64", mask)), Imm("i64", 0))
        self.items.append(Goto(skip, test))
        second = self.load(here + 8)
        total = self.value("add", second, before if self.handed != "nothing" else Imm("i64", 3))
        if plan.random() < 0.5:
            total = self.value("add", total, self.value("sub", first, second))
        sum_ = Linear(here, ((POINTER, 1), (COUNTER, STRIDE * self.count)))
        address = Val(self.fresh(), "i64")
        self.items.append(LetLinear(address, sum_, Origin(self.fresh())))
        where = Linear(16, ((address, 1),)) if plan.random() < 0.5 else Linear(here + 16, sum_.terms)
        self.items.append(Store("i64", where, total, Origin(self.fresh())))
        if self.handed == "sum":
            self.items.append(Assign(after, total, self.fresh()))
        if self.handed == "sum" or plan.random() < 0.5:
            self.items.append(Goto(end, None))
            self.items.append(Label(skip))
            if self.handed == "sum":
                self.items.append(Assign(after, before, self.fresh()))
            self.items.append(Label(end))
        else:
            self.items.append(Label(skip))
        return after if self.handed == "sum" else first

    def lifted(self, seed: int) -> Lifted:
        variable = Var(50, "i64")
        before: Operand = variable
        last = before
        for k in range(self.count):
            last = self.copy(k, random.Random(seed), before)
            before = variable if self.odd == "apart" else last
        tail = [] if self.handed == "nothing" else [Assign(variable, last, self.fresh())]
        loop = LiftedLoop(COUNTER, Imm("i64", TRIPS), (*self.items, *tail), 0x500)
        start = Assign(variable, Imm("i64", 7), self.fresh())
        return Lifted("f", 0x500, (LiveIn(POINTER, Gpr(7)),), (LiveOut(variable, Gpr(0)),), (start, loop))


def loops(lifted: Lifted) -> list[LiftedLoop]:
    return [item for item in everything(lifted.body) if isinstance(item, LiftedLoop)]


@settings(max_examples=300, deadline=None)
@given(
    st.integers(2, 5), st.sampled_from(("nothing", "sum", "value")),
    st.sampled_from(("", "", "", "address", "constant", "apart")), st.integers(0, 1 << 30),
    st.randoms(use_true_random=False),
)  # fmt: skip
def test_copies_with_branches(count: int, handed: str, odd: str, seed: int, data: object) -> None:
    lifted = Writer(count, random.Random(seed), handed, odd).lifted(seed)
    memory = bytes(getattr(data, "randbytes")(512))  # noqa: B009 - hypothesis's random has no type
    before, after = SmallMemory(memory), SmallMemory(memory)
    trace = interpreted(lifted, {Gpr(7): MEMORY_START}, before)
    rolled = reroll(lifted, Evidence.of(trace, ()))
    (loop,) = loops(rolled)
    same = not odd or (odd == "apart" and (handed == "nothing" or count == 1))
    event(f"rolled: {rolled != lifted}, odd: {odd}")
    assert (len(loop.body) * count <= len(loops(lifted)[0].body) + count * 2) == same
    found = run_lifted(rolled, {Gpr(7): MEMORY_START}, after)
    assert after.data == before.data
    assert found == run_lifted(lifted, {Gpr(7): MEMORY_START}, SmallMemory(memory))


def test_what_an_iteration_of_the_copies_leaves_is_not_another_copys() -> None:
    """Two sums, each by one of two copies, where a branch decides whether it goes on."""
    sums, items = [Var(60, "i64"), Var(61, "i64")], list[Item]()
    for k, variable in enumerate(sums):
        value, test, total = Val(70 + k, "i64"), Val(80 + k, "i1"), Val(90 + k, "i64")
        items += [
            Load(value, Linear(8 * k, ((POINTER, 1), (COUNTER, 16))), Origin(0x10 + k)),
            Let(test, "eq", (value, Imm("i64", 0)), Origin(0x20 + k)),
            Goto(10 + k, test),
            Let(total, "add", (variable, value), Origin(0x30 + k)),
            Assign(variable, total, 200 + k),
            Label(10 + k),
            Store("i64", Linear(256 + 8 * k, ((POINTER, 1), (COUNTER, 16))), variable, Origin(0x40 + k)),
        ]
    starts = [Assign(v, Imm("i64", 0), 100 + k) for k, v in enumerate(sums)]
    loop = LiftedLoop(COUNTER, Imm("i64", TRIPS), tuple(items), 0x500)
    lifted = Lifted("f", 0x500, (LiveIn(POINTER, Gpr(7)),), (), (*starts, loop))
    trace = interpreted(lifted, {Gpr(7): MEMORY_START}, SmallMemory(bytes(range(256)) * 2))
    assert loops(reroll(lifted, Evidence.of(trace, ())))[0].body == loop.body


ANTS = """
struct ant { float x, y, v; unsigned bits; double food; };
void march(struct ant *a, long n, double dt) {
    for (long i = 0; i < n; i++) {
        if (!(a[i].bits & 1)) continue;
        a[i].x += (float)dt * a[i].v;
        if (a[i].bits & 4) a[i].y -= a[i].x;
    }
}
void fed(struct ant *a, long n, double dt) {
    double total = 0.0;
    for (long i = 0; i < n; i++)
        if (a[i].bits & 2) { total += a[i].food * dt; a[i].y = (float)total; }
}"""


@pytest.mark.parametrize(
    ("symbol", "flags"),
    [
        *slower(("march", ("-O2", "-mtune=znver3", "-fno-vectorize"))),
        ("march", ("-O3", "-march=haswell", "-fno-vectorize")),
        ("fed", ("-O3", "-march=haswell", "-fno-vectorize")),
    ],
)
@pytest.mark.parametrize("kind", ["soa", *slower(("blocks",))])
def test_what_clang_unrolls(kind: str, symbol: str, flags: tuple[str, ...], tmp_path: Path) -> None:
    case = Case(ANTS, symbol, (*flags, "-fno-slp-vectorize"), tmp_path, "clang")
    case.flags = ("-O2",)
    source = np.random.default_rng(4)
    data = np.zeros(61, [("x", "f4"), ("y", "f4"), ("v", "f4"), ("bits", "u4"), ("food", "f8")])
    for name in ("x", "y", "v", "food"):
        data[name] = source.random(61)
    data["bits"] = source.integers(0, 8, 61)
    case.arrays, case.integers, case.floats = [data], [data.ctypes.data, 61], [0.5]
    names = (("x", 0), ("y", 4), ("v", 8)) if symbol == "march" else (("y", 4),)
    fields = [Field(name, at, 4, "float", 1, 1) for name, at in names]
    fields.append(Field("bits", 12, 4, "unsigned", 1, 0))
    if symbol == "fed":
        fields.append(Field("food", 16, 8, "double", 1, 0))
    case.structures = (Structure("s0", "a", data.ctypes.data, data.nbytes, (Dim(61, 24),), tuple(fields)),)
    case.prepare()
    rolled = run_passes(case.lifted, Evidence.of(case.trace, case.structures), (reroll,), verify=True)
    copied = [len(a.lanes) for a in everything(rolled.body) if isinstance(a, Load | Store) and a.lanes]
    assert copied, "nothing was unrolled: nothing is tested"
    verify(case, candidate(relayout(case.structures[0], kind)))
