"""Fields of several sizes in one record: what is said of such a layout is what is measured."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layout_advise.layoutalgebra.derive.declared import Declared
from layout_advise.layoutalgebra.derive.structure import Candidate, Dim, Field, Structure
from layout_advise.layoutalgebra.explore.explore import explore
from layout_advise.layoutalgebra.sets.nests import Affine, FoldedStream, Loop, Point
from layout_advise.layoutalgebra.terms.text import parse
from layout_advise.observe.observe import derive
from layout_advise.propose.titles import title, words
from layout_advise.tracer.objects.attribution import Attribution, ObjectTouch
from layout_advise.tracer.objects.memory_object import MemoryObject
from layout_advise.tracer.trace.trace import Reference, Registers, Trace

ROW = (
    Field("date", 16, 4, "int", 5000, 0),
    Field("quantity", 20, 4, "int", 1700, 0),
    Field("price", 24, 8, "double", 800, 0),
    Field("discount", 32, 8, "double", 800, 0),
)
COLD = (Field("id", 0, 8, "long", 0, 0), Field("customer", 8, 8, "long", 0, 0), Field("tax", 40, 8, "double", 0, 0))


def rows(fields: tuple[Field, ...], element: int, count: int = 40) -> Structure:
    dims = (Dim(count, element),)
    return Structure("s0", "row", 0x1000, count * element, dims, fields, COLD if element == 96 else (), 0x1000)


def test_the_used_fields_in_one_record_are_one_array() -> None:
    """``scan``: measured in records of 24 bytes, and told as two arrays, one of the integers and one of the doubles."""
    found = {c.relayouts[0].arrays: c for c in explore([rows(ROW, 96)]) if "split" in c.families and "soa" not in c.families}
    together = found[(("date", "quantity", "price", "discount"),)]
    assert "as an array of the 4 used fields (date, quantity, price, discount)" in title(together, "revenue")
    assert words(together) == "split, compact: used | rest"
    assert together.relayouts[0].term == "A_40 ⊗ S_{0,1;6} ; A_40 ⊗ S_{1,2;3}"
    split = found[(("date",), ("quantity", "price", "discount"))]
    assert "as 2 arrays of structures: (date), (quantity, price, discount)" in title(split, "revenue")
    assert words(split) == "split, compact: date | quantity price discount"
    names = [words(c) for c in explore([rows(ROW, 96)])]
    assert len(set(names)) == len(names)


@st.composite
def records(draw: st.DrawFn) -> Structure:
    sizes = draw(st.lists(st.sampled_from([1, 2, 4, 8]), min_size=2, max_size=5))
    fields, at = [], 0
    for k, size in enumerate(sizes):
        at = -(-at // size) * size
        fields.append(Field(f"f{k}", at, size, "", draw(st.integers(1, 9)), draw(st.integers(0, 2))))
        at += size + 8 * draw(st.integers(0, 1))
    return rows(tuple(fields), -(-at // 8) * 8, draw(st.integers(3, 9)))


@given(records())
def test_arrays_hold_every_field_once_and_terms_say_where(structure: Structure) -> None:
    for candidate in explore([structure]):
        (layout,) = candidate.relayouts
        assert sorted(name for names in layout.arrays for name in names) == sorted(f.name for f in structure.fields)
        if len(layout.buffers) == 1 and candidate.block is None and "permute" not in candidate.families:
            check_places(candidate)


def check_places(candidate: Candidate) -> None:
    """Every part's term holds the places of its fields, in its unit."""
    (layout,) = candidate.relayouts
    for part in layout.parts:
        maps = [m for m in layout.fields if layout.structure.fields[m.field].name in part.fields]
        places = sorted(m.place((k,)) for m in maps for k in range(layout.structure.count))
        assert sorted(part.unit_bytes * offset for offset in parse(part.term).offsets()) == places


def test_layouts_of_what_the_hotspot_uses_most_come_first() -> None:
    """Rays and the nodes of a tree: the rays' layouts, which gain nothing, took half of the places."""
    busy = rows(tuple(replace(f, reads=1000 * f.reads) for f in ROW), 96)
    narrow = (Field("x", 0, 4, "float", 40, 0), Field("y", 60, 4, "float", 40, 0))
    idle = replace(rows(narrow, 128), id="s1", name="ray")
    alone = [c for c in explore([idle, busy]) if len(c.relayouts) == 1]
    owners = [c.relayouts[0].structure.id for c in alone]
    assert owners == sorted(owners)
    best = {owner: min(c.cost["relative"] for c in alone if c.relayouts[0].structure.id == owner) for owner in ("s0", "s1")}
    assert best["s1"] < best["s0"]


@pytest.mark.parametrize(
    ("declared", "element", "said"),
    [
        (Declared("double", 8, (), (), 8), 24, "double[3]"),
        (Declared("short", 2, (), (), 2), 8, "short[4]"),
        (Declared("short", 2, (), (), 2), 1, None),
        (Declared("Alignment", 4304, (), (), 4304), 8, None),
    ],
)
def test_elements_that_are_no_declared_ones_are_not_called_so(declared: Declared, element: int, said: str | None) -> None:
    """``538 × FullPairwiseAlign of 8 bytes``: one object of 4304 bytes, seen word by word."""
    base = 0x1000
    loop = Loop(Affine(20), (Point(Affine(base, (element,))),))
    stream = FoldedStream((loop,), 20)
    reference = Reference(0, 0x400, 0, "read", min(element, 8))
    registers = Registers((0,) * 16, 0, 0, 0, 0)
    trace = Trace("f", 1, "clone", (reference,), (stream,), 20, False, registers, (), ())
    memory = MemoryObject("heap", "p", base, 20 * element, declared, base, references=(0,))
    touches = ((ObjectTouch(0, 20),),)
    found = derive(memory, 0, ((memory, Attribution((memory,), touches, (None,)), trace),), element if element == 24 else 0)
    assert (found.structure.element_bytes, found.structure.type) == (element, said)
