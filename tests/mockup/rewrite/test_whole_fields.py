"""Fields of which a part is read are read whole, and compute the same: random tests of bits in the interpreter, and what
compilers make of flags on the processor."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from layout_advise.layoutalgebra.derive.structure import Dim, Field, Structure
from layout_advise.mockup.evidence.binding import access_bytes, accesses
from layout_advise.mockup.evidence.evidence import Evidence
from layout_advise.mockup.ir.effects import BITS, Gpr, Ty
from layout_advise.mockup.ir.lifted import (
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
    Origin,
    Store,
    Val,
)
from layout_advise.mockup.rewrite.passes import run_passes
from layout_advise.mockup.rewrite.whole_fields import whole_fields
from tests.support import slower
from tests.support.lifting.run_lifted import run_lifted
from tests.support.mockups.case import Case, verify
from tests.support.mockups.native import candidate, relayout
from tests.support.mockups.small_memory import COUNTER, MEMORY_START, POINTER, SmallMemory, interpreted

ELEMENT, TRIPS = 16, 6
BITS_OF: list[Ty] = ["i8", "i16"]


def read_sizes(lifted: Lifted) -> list[int]:
    return [access_bytes(a) for a in accesses(lifted.body) if isinstance(a, Load)]


def masked(ty: Ty, at: int, mask: int, other: int, how: str, *, stored: bool) -> Lifted:
    """``for k: part = a[k].field; if ((part & mask) how other) a[k].sum = part``."""
    part, bits, test = Val(10, ty), Val(11, ty), Val(12, "i1")
    terms = ((POINTER, 1), (COUNTER, ELEMENT))
    body: list[Item] = [
        Load(part, Linear(at, terms), Origin(0x10)),
        Let(bits, "and", (part, Imm(ty, mask)), Origin(0x11)),
        Let(test, how, (bits, Imm(ty, other)), Origin(0x12)),
        Goto(7, test),
        Store(ty, Linear(12, terms), part if stored else bits, Origin(0x13)),
        Label(7),
    ]
    loop = LiftedLoop(COUNTER, Imm("i64", TRIPS), tuple(body), 0x500)
    return Lifted("f", 0x500, (LiveIn(POINTER, Gpr(7)),), (), (loop,))


def structure(width: int, *, writes: int = 0, declared: str | None = "unsigned") -> Structure:
    fields = (Field("flags", 0, width, declared, 1, writes), Field("sum", 12, 2, "short", 0, 1))
    return Structure("s0", "a", MEMORY_START, ELEMENT * TRIPS, (Dim(TRIPS, ELEMENT),), fields, (), MEMORY_START)


@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from(BITS_OF), st.sampled_from((2, 4, 8)), st.integers(0, 7), st.integers(0, 65535), st.integers(0, 3),
    st.sampled_from(("eq", "ne")), st.booleans(), st.randoms(use_true_random=False),
)  # fmt: skip
def test_bits_of_a_field(ty: Ty, width: int, at: int, mask: int, other: int, how: str, stored: bool, random: object) -> None:
    size = BITS[ty] // 8
    at = at % width // size * size
    lifted = masked(ty, at, mask % (1 << BITS[ty]), other, how, stored=stored)
    data = bytes(getattr(random, "randbytes")(ELEMENT * TRIPS)).ljust(512, b"\0")  # noqa: B009 - it has no type
    before, after = SmallMemory(data), SmallMemory(data)
    trace = interpreted(lifted, {Gpr(7): MEMORY_START}, before)
    made = whole_fields(lifted, Evidence.of(trace, (structure(width),)))
    event(f"widened: {made != lifted}")
    assert read_sizes(made) == [width]
    run_lifted(made, {Gpr(7): MEMORY_START}, after)
    assert after.data == before.data


def test_only_declared_fields_that_nothing_stores() -> None:
    lifted = masked("i8", 0, 1, 0, "eq", stored=False)
    trace = interpreted(lifted, {Gpr(7): MEMORY_START}, SmallMemory(bytes(512)))
    assert read_sizes(whole_fields(lifted, Evidence.of(trace, (structure(4),)))) == [4]
    assert whole_fields(lifted, Evidence.of(trace, (structure(4, writes=1),))) == lifted
    assert whole_fields(lifted, Evidence.of(trace, (structure(4, declared=None),))) == lifted
    assert whole_fields(lifted, Evidence.of(trace, (structure(1),))) == lifted
    across = replace(structure(4), fields=(Field("name", 0, 3, "char", 1, 0),))
    assert whole_fields(lifted, Evidence.of(trace, (across,))) == lifted
    assert whole_fields(lifted, Evidence.of(trace, ())) == lifted


ENTITIES = """
struct entity { float x, v; unsigned flags; unsigned short kind; unsigned char level, spare; };
void move(struct entity *e, long n, double dt) {
    for (long i = 0; i < n; i++) {
        if (e[i].flags & 1) e[i].x += (float)dt * e[i].v;
        if (e[i].flags & 0x20000) e[i].v = -e[i].v;
        if ((e[i].kind & 0x300) == 0x100) e[i].v += 1.0f;
        if (e[i].level > 3) e[i].x = 0.0f;
    }
}
void mark(struct entity *e, long n, double dt) {
    for (long i = 0; i < n; i++) {
        if (e[i].flags & 4) { e[i].x += (float)dt; e[i].flags |= 0x10; }
        if (e[i].kind & 2) e[i].v *= 2.0f;
    }
}"""


@pytest.mark.parametrize("flags", [("-O2",), *slower((("-O3", "-march=haswell"),))])
@pytest.mark.parametrize(("symbol", "sizes"), [("move", {4, 2, 1}), ("mark", {4, 2})])
def test_flags_of_entities(symbol: str, sizes: set[int], flags: tuple[str, ...], tmp_path: Path) -> None:
    case = Case(ENTITIES, symbol, flags, tmp_path)
    random = np.random.default_rng(5)
    data = np.zeros(53, [("x", "f4"), ("v", "f4"), ("flags", "u4"), ("kind", "u2"), ("level", "u1"), ("spare", "u1")])
    for name in ("x", "v"):
        data[name] = random.random(53)
    for name in ("flags", "kind", "level"):
        data[name] = random.integers(0, np.iinfo(data[name].dtype).max // 2, 53)
    case.arrays, case.integers, case.floats = [data], [data.ctypes.data, 53], [0.25]
    marked = symbol == "mark"
    fields = (
        Field("x", 0, 4, "float", 1, 1),
        Field("v", 4, 4, "float", 1, 1),
        Field("flags", 8, 4, "unsigned", 1, int(marked)),
        Field("kind", 12, 2, "unsigned short", 1, 0),
        *(() if marked else (Field("level", 14, 1, "unsigned char", 1, 0),)),
    )
    case.structures = (Structure("s0", "e", data.ctypes.data, data.nbytes, (Dim(53, 16),), fields),)
    case.prepare()
    partly = {size for a in accesses(case.lifted.body) if isinstance(a, Load) for size in [access_bytes(a)]}
    assert 1 in partly  # else nothing is tested
    case.lifted = run_passes(case.lifted, Evidence.of(case.trace, case.structures), (whole_fields,), verify=True)
    assert {access_bytes(a) for a in accesses(case.lifted.body) if isinstance(a, Load)} <= sizes | ({1} if marked else set())
    for kind in ("soa", "blocks"):
        verify(case, candidate(relayout(case.structures[0], kind)))
