"""Blocks as long as a calibration says: how a call goes through a structure, and which candidates that gives."""

from __future__ import annotations

from dataclasses import replace

import pytest

from layout_advise import machine
from layout_advise.layoutalgebra.derive.structure import Dim
from layout_advise.layoutalgebra.explore.partitions import Suggested
from layout_advise.layoutalgebra.sets.nests import AddressSet, Affine, FoldedStream, Loop, Point, Stream
from layout_advise.propose.cluster_tiles import tiled_partition, trips_of, with_tiles
from layout_advise.propose.field_clusters import suggested
from layout_advise.propose.proposals import propose
from layout_advise.reports.model.contract import Machine
from layout_advise.tiles.processor.shapes import WHOLE, ClusterWalk
from layout_advise.tiles.processor.stored import SCHEMA, ProcessorCalibration, store
from layout_advise.tiles.tree import TileTree, TreeNode
from tests.support.algebra_structures import is_injective
from tests.support.tracing.field_walks import BASE, COUNT, FORAGE, GROW, RECORDS, seen, walk

BY_BYTES = TileTree((TreeNode(0, 20.0, 1, 2, 0), TreeNode(-1, 0.0, -1, -1, 128), TreeNode(-1, 0.0, -1, -1, 16)), 0.0)
"""Clusters of up to 20 bytes in tiles of 128, others in tiles of 16."""


def calibrated(at: Machine, tree: TileTree = BY_BYTES) -> None:
    store(ProcessorCalibration(SCHEMA, at, "gcc", ("-O3",), 1.0, tree, 1.0, 1.1, 1.2, 1.3, ()))


def nest(address: Affine, *trips: int) -> Stream:
    node: Loop | Point = Point(address)
    count = 1
    for trip in reversed(trips):
        node, count = Loop(Affine(trip), (node,)), count * trip
    return FoldedStream((node,), count)


@pytest.mark.parametrize(
    ("streams", "trips"),
    [
        ([walk(0)], COUNT),
        ([nest(Affine(BASE, (480, 48)), 100, 10)], 10),  # ten neighbours, then the next ten
        ([nest(Affine(BASE, (0, 48)), 7, COUNT)], COUNT),
        ([nest(Affine(BASE, (48, 0)), COUNT, 7)], COUNT),  # the same element seven times
        ([nest(Affine(BASE, (48, 8)), COUNT, 6)], COUNT),  # all fields of each
        ([nest(Affine(BASE, (8,)), 6 * COUNT)], COUNT),  # the same in one loop
        ([nest(Affine(BASE, (48, 480)), 10, 100)], 1),  # each tenth one
        ([nest(Affine(BASE + 48 * (COUNT - 1), (-48,)), COUNT)], COUNT),
        ([nest(Affine(BASE + 96 * k, (192,)), COUNT // 4) for k in range(2)], 1),  # two of four are left out
        ([nest(Affine(BASE + 48 * k, (192,)), COUNT // 4) for k in range(4)], COUNT),  # four a turn
        ([AddressSet(BASE, BASE + 48 * (COUNT - 1), 48, 5000, None)], 1),
        ([walk(0), AddressSet(BASE, BASE + 48 * (COUNT - 1), 48, 5000, None)], 1),  # most accesses count
    ],
)
def test_trips_are_the_elements_one_after_another(streams: list[Stream], trips: int) -> None:
    assert trips_of(seen(streams, 100), RECORDS) == trips


def test_a_loop_whose_length_changes_counts_as_long_as_the_structure() -> None:
    inner = Loop(Affine(0, (1,)), (Point(Affine(BASE, (0, 48))),))
    triangle = FoldedStream((Loop(Affine(COUNT), (inner,)),), COUNT * (COUNT - 1) // 2)
    assert trips_of(seen([triangle], 100), RECORDS) == COUNT


def test_each_cluster_asks_with_its_own_bytes() -> None:
    asked: list[ClusterWalk] = []

    class Asked(TileTree, frozen=True):
        def tile(self, shape: ClusterWalk) -> int:  # type: ignore[override]
            asked.append(shape)
            return BY_BYTES.tile(shape)

    found = tiled_partition(RECORDS, ((0, 1), (2, 3, 4), (5,)), 7, Asked((), 0.0))
    assert found == Suggested(((0, 1), (2, 3, 4), (5,)), "tiles", (128, 16, 1))
    assert asked == [ClusterWalk(16, 2, COUNT, 7), ClusterWalk(24, 3, COUNT, 7)]


def test_with_a_calibration_clusters_are_tried_in_tiles_of_their_own() -> None:
    calibrated(machine.describe())
    found = propose(GROW, 20, beside=(FORAGE,))
    own = [c for c in found if c.proposers == ("tiles",)]
    by_block = {
        m.field: {a.block for a in m.axes if a.part == "mod"}
        for c in own[:]
        for m in c.relayouts[0].fields
        if c.block == 128
    }
    assert by_block == {0: {128}, 1: {128}, 2: {16}, 3: {16}, 4: {16}, 5: {16}}
    (clustered,) = (c for c in own if c.block == 128)
    assert clustered.relayouts[0].arrays == (("a", "b"), ("c", "d", "e", "f"))
    (together,) = (c for c in own if len(c.relayouts[0].buffers) == 1)
    assert (together.families, together.block) == (("aosoa", "pad"), 16)
    assert all(is_injective(c.relayouts[0]) for c in own)


def test_the_budget_is_the_same_and_holds_one() -> None:
    calibrated(machine.describe())
    found = propose(GROW, 6, beside=(FORAGE,))
    assert len(found) == 6
    assert "tiles" in {name for c in found for name in c.proposers}
    assert [c.id for c in found] == [f"c{k}" for k in range(1, 7)]


def test_without_one_nothing_changes() -> None:
    """Nor with that of another processor."""
    before = propose(GROW, 20, beside=(FORAGE,))
    assert all("tiles" not in c.proposers for c in before)
    calibrated(replace_cpu("another processor"))
    assert repr(propose(GROW, 20, beside=(FORAGE,))) == repr(before)
    calibrated(machine.describe())
    after = propose(GROW, 20, beside=(FORAGE,))
    layouts = [c.relayouts for c in after if c.proposers != ("tiles",)]
    assert layouts == [c.relayouts for c in before]


def replace_cpu(name: str) -> Machine:
    here = machine.describe()
    return Machine(name, here.cores, here.line_bytes, here.l1d_bytes, here.l2_bytes, here.l3_bytes)


def test_what_cannot_be_tiled_is_left_as_it_is() -> None:
    known = suggested(GROW, (FORAGE,))
    assert with_tiles(GROW, known, None) == known
    alone = replace(RECORDS, fields=RECORDS.fields[:1])
    for one in (alone, replace(RECORDS, inexact="the trace was cut"), replace(RECORDS, dims=(Dim(1, 48),))):
        derived = (replace(GROW.derived[0], structure=one),)
        assert with_tiles(replace(GROW, derived=derived), {}, BY_BYTES) == {}


def test_a_tree_that_says_arrays_only_names_what_is_there() -> None:
    before = propose(GROW, 20, beside=(FORAGE,))
    calibrated(machine.describe(), TileTree((TreeNode(-1, 0.0, -1, -1, WHOLE),), 0.0))
    found = propose(GROW, 20, beside=(FORAGE,))
    assert [c.relayouts for c in found] == [c.relayouts for c in before]
    (arrays,) = (c for c in found if len(c.relayouts[0].buffers) == len(RECORDS.fields))
    assert "tiles" in arrays.proposers
