"""Partitions that calls suggest: from the order in which they access fields, those of other regions included."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

from layout_advise.describe.describe import structures
from layout_advise.layoutalgebra.derive.accesses import Derived
from layout_advise.layoutalgebra.explore.partitions import Suggested
from layout_advise.layoutalgebra.sets.nests import AddressSet, Affine, Loop, Point
from layout_advise.propose.field_clusters import suggested
from layout_advise.propose.proposals import propose
from layout_advise.tracer.trace.trace import Control
from tests.support.tracing.field_walks import BASE, COUNT, FORAGE, GROW, RECORDS, seen, walk

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
