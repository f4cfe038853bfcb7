"""Layouts of suggested partitions: what they keep together, their block lengths, and who is told to have found them."""

from __future__ import annotations

from layout_advise.layoutalgebra.explore.explore import explore
from layout_advise.layoutalgebra.explore.joint_candidates import spread
from layout_advise.layoutalgebra.explore.partitions import Suggested
from tests.support.algebra_structures import of_sizes

MIXED = of_sizes([1001], [8, 8, 4, 4, 8], [0] * 5, 8)
CLUSTERS = Suggested(((0, 1), (2, 3), (4,)), "field graph")
ALONE = Suggested(((0,), (1,), (2,), (3,), (4,)), "field graph")


def test_clusters_become_records_of_their_own_and_blocks_of_their_own_length() -> None:
    found = explore([MIXED], lanes=(32,), budget=20, suggested={"s0": (CLUSTERS, ALONE)})
    own = [c for c in found if c.proposers == ("field graph",)]
    assert {c.families for c in own} == {("split",), ("aosoa", "split", "pad")}
    for one in own:
        assert sorted(sorted(names) for names in one.relayouts[0].arrays) == [["m0", "m1"], ["m2", "m3"], ["m4"]]
    (tiled,) = (c for c in own if c.block)
    blocks = {m.field: {a.block for a in m.axes if a.part == "mod"} for m in tiled.relayouts[0].fields}
    assert blocks == {0: {4}, 1: {4}, 2: {8}, 3: {8}, 4: set()}  # 32 bytes of doubles, of floats
    places = {(m.buffer, m.place((k,))) for m in tiled.relayouts[0].fields for k in range(1001)}
    assert len(places) == 5 * 1001


def test_what_several_ways_find_is_one_layout_with_all_of_them() -> None:
    affine = Suggested(CLUSTERS.partition, "affinity")
    found = explore([MIXED], lanes=(32,), budget=20, suggested={"s0": (CLUSTERS, ALONE, affine)})
    by_arrays = {(c.families, c.relayouts[0].arrays): c.proposers for c in found if not c.block}
    assert len(by_arrays) == len([c for c in found if not c.block])
    soa = next(names for (families, _), names in by_arrays.items() if families == ("soa",))
    assert soa == ("rules", "field graph")
    assert ("field graph", "affinity") in by_arrays.values()
    without = explore([MIXED], lanes=(32,), budget=20)
    assert {c.proposers for c in without} <= {("rules",), ("search",), ("rules", "search")}


def test_a_small_budget_holds_one_of_each_way() -> None:
    found = explore(
        [MIXED], lanes=(32,), budget=20, suggested={"s0": (CLUSTERS, Suggested(((0, 2, 3), (1, 4)), "affinity"))}
    )
    kept = spread(found, 8)
    assert {name for c in kept for name in c.proposers} >= {"rules", "field graph", "affinity"}
