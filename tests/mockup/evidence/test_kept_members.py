"""Members that only calls which stay calls touch: against each way that a member can be used in."""

from __future__ import annotations

from dataclasses import replace

import pytest

from layout_advise.layoutalgebra.derive.structure import Dim, Field, Structure
from layout_advise.layoutalgebra.sets.nests import Affine, FoldedStream, Loop, Point
from layout_advise.mockup.evidence.binding import bind
from layout_advise.mockup.evidence.kept_members import with_kept_members
from layout_advise.mockup.ir.lifted import Lifted
from layout_advise.tracer.trace.trace import Reference, Registers, Trace

OWN, KEPT = 0x4000, 0x5000
FIELDS = tuple(Field(name, 8 * k, 8, "double", 1, 0) for k, name in enumerate("xyz"))
PARTICLES = Structure("s0", "p", 0x10000, 2400, (Dim(100, 24),), FIELDS)


def traced(*touched: tuple[int, str]) -> Trace:
    """Code at these addresses loads these members of all elements."""
    references, streams = [], []
    for number, (pc, member) in enumerate(touched):
        references.append(Reference(number, pc + 4 * number, 0, "read", 8))
        point = Point(Affine(PARTICLES.base + 8 * "xyz".index(member), (24,)))
        streams.append(FoldedStream((Loop(Affine(100), (point,)),), 100))
    registers = Registers((0,) * 16, 0, 0, 0, 0)
    return Trace("f", 1, "step", tuple(references), tuple(streams), 100 * len(touched), False, registers, (), ())


@pytest.mark.parametrize(
    ("touched", "cold"),
    [
        (((OWN, "x"), (KEPT, "y")), "y"),
        (((OWN, "x"), (OWN, "z"), (KEPT, "y"), (KEPT, "z")), "y"),  # z is used by both
        (((OWN, "x"), (OWN, "y")), ""),
        (((KEPT, "x"), (KEPT, "y"), (KEPT, "z")), ""),  # nothing would be left
    ],
)
def test_what_only_kept_calls_touch_keeps_its_place(touched: tuple[tuple[int, str], ...], cold: str) -> None:
    trace = traced(*touched)
    structure = replace(PARTICLES, fields=tuple(f for f in FIELDS if f.name in {name for _, name in touched}))
    lifted = Lifted("f", OWN, (), (), (), native=((KEPT, KEPT + 0x100),))
    (found,) = with_kept_members(lifted, trace, (structure,))
    assert {f.name for f in found.cold} == set(cold)
    assert {f.name for f in (*found.fields, *found.cold)} == {f.name for f in structure.fields}


def test_a_kept_call_stands_in_the_way_of_what_it_would_miss_only() -> None:
    trace, lifted = traced((KEPT, "y")), Lifted("f", OWN, (), (), (), native=((KEPT, KEPT + 0x100),))
    moved = replace(PARTICLES, fields=FIELDS[1:])
    assert bind(lifted, trace, (moved,)).impossible["s0"].endswith("is made by a call that stays a call")
    stays = replace(PARTICLES, fields=FIELDS[::2], cold=FIELDS[1:2])
    assert not bind(lifted, trace, (stays,)).impossible


def test_without_kept_calls_nothing_changes() -> None:
    (found,) = with_kept_members(Lifted("f", OWN, (), (), ()), traced((OWN, "x"), (KEPT, "y")), (PARTICLES,))
    assert found is PARTICLES
