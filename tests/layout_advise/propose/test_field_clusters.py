"""Partitions that calls suggest: from the order in which they access fields, those of other regions included."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

from layout_advise.describe.describe import structures
from layout_advise.layoutalgebra.derive.accesses import Derived
from layout_advise.layoutalgebra.derive.structure import Dim, Field, Structure
from layout_advise.layoutalgebra.explore.partitions import Suggested
from layout_advise.layoutalgebra.sets.nests import AddressSet, Affine, FoldedStream, Loop, Point, Stream
from layout_advise.observe.observe import Observation
from layout_advise.propose.field_clusters import suggested
from layout_advise.propose.proposals import propose
from layout_advise.tracer.code.region import Region
from layout_advise.tracer.objects.attribution import Attribution, ObjectTouch
from layout_advise.tracer.objects.memory_object import MemoryObject
from layout_advise.tracer.trace.trace import Control, Reference, Registers, Trace

COUNT, BASE = 1000, 1 << 20
RECORDS = Structure(
    "s0", "p", BASE, 48 * COUNT, (Dim(COUNT, 48),), tuple(Field(n, 8 * k, 8, None, 100) for k, n in enumerate("abcdef"))
)


def walk(offset: int) -> Stream:
    return FoldedStream((Loop(Affine(COUNT), (Point(Affine(BASE + offset, (48,))),)),), COUNT)


def seen(streams: list[Stream], first_pc: int, *, folds: bool = True) -> Observation:
    """A call that accesses 8 bytes by each of ``streams`` in every turn of one loop."""
    references = tuple(Reference(k, first_pc + k, 0, "read", 8) for k in range(len(streams)))
    last = len(streams) - 1
    nodes = (Loop(Affine(COUNT), (Point(Affine(0)),)),) if folds else None
    control = Control(nodes, ((0, last),), None if folds else "irregular")
    registers = Registers((0,) * 16, 0, 0, 0, 0)
    trace = Trace("f", 1, "step", references, tuple(streams), 1, False, registers, (), (), control=control)
    block = MemoryObject("heap", "p", BASE, 48 * COUNT, references=tuple(range(len(streams))))
    touches = ((ObjectTouch(0, COUNT),),) * len(streams)
    attribution = Attribution((block,), touches, (None,) * len(streams))
    derived = (Derived(RECORDS, None, 8, 0, False),)
    return Observation(Region("f", "function", 0, (), "", 0), trace, derived, (), (), attribution=attribution)


GROW, FORAGE = seen([walk(0), walk(8)], 100), seen([walk(16), walk(24), walk(32), walk(40)], 200)
CLUSTERS = ((0, 1), (2, 3, 4, 5))


def test_fields_of_one_region_each_are_clusters_of_the_program() -> None:
    found = suggested(GROW, (FORAGE,))["s0"]
    assert Suggested(CLUSTERS, "field graph") in found
    assert Suggested(CLUSTERS, "affinity") in found
    assert Suggested(tuple((k,) for k in range(6)), "field graph") in found
    (kept,) = (
        c
        for c in propose(GROW, 20, beside=(FORAGE,))
        if c.families == ("split",) and len(c.relayouts[0].buffers) == 2 and "affinity" in c.proposers
    )
    assert kept.relayouts[0].arrays == (("a", "b"), ("c", "d", "e", "f"))
    assert "field graph" in kept.proposers


def test_an_order_that_does_not_fold_is_that_of_the_code() -> None:
    irregular = seen([walk(0), walk(8)], 100, folds=False)
    assert suggested(irregular, (FORAGE,)) == suggested(GROW, (FORAGE,))


def test_nothing_is_suggested_where_the_order_of_fields_is_not_known() -> None:
    anywhere = AddressSet(BASE, BASE + 40, 8, 50, b"\x3f")
    assert suggested(seen([walk(0), anywhere], 100)) == {}
    assert suggested(replace(GROW, attribution=None)) == {}
    truncated = Derived(replace(RECORDS, inexact="the trace was cut"), None, 8, 0, False)
    assert suggested(replace(GROW, derived=(truncated,))) == {}


def test_the_report_has_each_pair_with_what_its_accesses_one_by_one_give() -> None:
    """Fields a and b in every turn of a loop, then c in every turn of another."""
    (report,) = structures(seen([walk(0), walk(8)], 100))
    assert [(p.first, p.second, p.affinity, p.distance) for p in report.pairs] == [("a", "b", 1.0, 8)]

    one = seen([walk(0), walk(8), walk(16)], 100)
    nodes = (Loop(Affine(COUNT), (Point(Affine(0)),)), Loop(Affine(COUNT), (Point(Affine(1)),)))
    control = Control(nodes, ((0, 1), (2, 2)), None)
    (report,) = structures(replace(one, trace=replace(one.trace, control=control)))
    order = ["a", "b"] * COUNT + ["c"] * COUNT
    places = {name: [8 * k for k, field in enumerate(order) if field == name] for name in "abc"}
    for pair, (x, y) in zip(report.pairs, combinations("abc", 2), strict=True):
        assert (pair.first, pair.second) == (x, y)
        far = [max(min(abs(p - q) for q in places[b]) for p in places[a]) for a, b in ((x, y), (y, x))]
        assert pair.distance == max(far)
        assert pair.affinity == (1.0 if (x, y) == ("a", "b") else 0.0)


def test_the_report_has_no_pairs_where_the_order_of_fields_is_not_known() -> None:
    anywhere = AddressSet(BASE, BASE + 40, 8, 50, b"\x3f")
    assert structures(seen([walk(0), anywhere], 100))[0].pairs == ()
