"""Clusters in tiles of their own: each place against its definition, and what becomes of rows and of whole structures."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layout_advise.layoutalgebra.derive.structure import Structure
from layout_advise.layoutalgebra.explore.explore import explore
from layout_advise.layoutalgebra.explore.families import in_tiles
from layout_advise.layoutalgebra.explore.joint_candidates import spread
from layout_advise.layoutalgebra.explore.partitions import Suggested, all_partitions
from layout_advise.layoutalgebra.explore.relayout import relayout
from tests.support.algebra_structures import is_injective, of_sizes

TILES = (1, 2, 4, 8, 16, 1 << 20)


def place_by_definition(structure: Structure, group: tuple[int, ...], tile: int, field: int, index: tuple[int, ...]) -> int:
    """In elements of one size, of one dimension: tiles one behind the other, in each an array of each field."""
    (at,) = index
    if len(group) == 1 or tile >= structure.count:
        return at
    return at // tile * tile * len(group) + group.index(field) * tile + at % tile


@given(st.integers(2, 40), st.integers(2, 4), st.data())
def test_each_place_is_that_of_the_definition(count: int, fields: int, data: st.DataObject) -> None:
    structure = of_sizes([count], [8] * fields, [0] * fields, 8)
    partition = data.draw(st.sampled_from(all_partitions(fields)))
    tiles = tuple(data.draw(st.sampled_from(TILES)) for _ in partition)
    layout = relayout(structure, in_tiles(structure, Suggested(partition, "tiles", tiles)).plan)
    tile_of = {n: (group, tile) for group, tile in zip(partition, tiles, strict=True) for n in group}
    for mapped in layout.fields:
        group, tile = tile_of[mapped.field]
        for index in product(range(count)):
            assert mapped.place(index) == 8 * place_by_definition(structure, group, tile, mapped.field, index)
    apart = {m.buffer for m in layout.fields if tile_of[m.field][1] >= count or len(tile_of[m.field][0]) == 1}
    assert len(apart) == sum(1 for n in range(fields) if tile_of[n][1] >= count or len(tile_of[n][0]) == 1)


@given(
    st.lists(st.integers(1, 6), min_size=1, max_size=3), st.lists(st.sampled_from([4, 8]), min_size=2, max_size=4), st.data()
)
def test_no_two_values_share_a_byte(dims: list[int], sizes: list[int], data: st.DataObject) -> None:
    structure = of_sizes(dims, sizes, [0] * len(sizes), 8)
    partition = data.draw(st.sampled_from(all_partitions(len(sizes))))
    tiles = tuple(data.draw(st.sampled_from(TILES)) for _ in partition)
    layout = relayout(structure, in_tiles(structure, Suggested(partition, "tiles", tiles)).plan)
    assert is_injective(layout)


def test_a_tile_that_holds_rows_has_whole_ones() -> None:
    """Rows of 5 elements: in a tile of 16 lie the fields of one row, side by side, not those of 3.2 rows."""
    structure = of_sizes([100, 5], [8, 8], [0, 0], 8)
    proposal = in_tiles(structure, Suggested(((0, 1),), "tiles", (16,)))
    assert (proposal.families, proposal.block) == (("permute",), None)
    layout = relayout(structure, proposal.plan)
    for row, column in product(range(100), range(5)):
        assert [m.place((row, column)) for m in layout.fields] == [8 * (10 * row + column), 8 * (10 * row + 5 + column)]


@pytest.mark.parametrize(
    ("tiles", "families", "block"),
    [((64, 16), ("aosoa", "split", "pad"), 64), ((1, 10), ("aosoa", "split"), 10), ((1, 1 << 30), ("split",), None)],
)
def test_what_it_is_called(tiles: tuple[int, int], families: tuple[str, ...], block: int | None) -> None:
    structure = of_sizes([1000], [8] * 4, [0] * 4, 8)
    found = in_tiles(structure, Suggested(((0, 1), (2, 3)), "tiles", tiles))
    blocks = tuple(tile for tile in tiles if tile < 1000) + (0, 0)[: 2 * (tiles[1] > 1000)]
    assert relayout(structure, found.plan).blocks == tuple(block if block > 1 else 0 for block in blocks)
    assert (found.families, found.block, found.proposer) == (families, block, "tiles")


def test_a_small_budget_holds_one_and_nothing_else_changes() -> None:
    structure = of_sizes([1000], [8] * 4, [0] * 4, 8)
    tiled = Suggested(((0, 1, 2, 3),), "tiles", (64,))
    found = explore([structure], lanes=(32,), budget=20, suggested={"s0": (tiled,)})
    without = explore([structure], lanes=(32,), budget=20)
    (own,) = (c for c in found if c.proposers == ("tiles",))
    assert (own.families, own.block) == (("aosoa", "pad"), 64)
    assert [replace(c, id="") for c in found if c is not own] == [replace(c, id="") for c in without]
    assert "tiles" in {name for c in spread(found, 4) for name in c.proposers}


def test_what_the_rules_have_already_only_gets_a_name() -> None:
    structure = of_sizes([1000], [8] * 4, [0] * 4, 8)
    whole = Suggested(((0, 1, 2, 3),), "tiles", (1 << 30,))
    as_it_is = Suggested(((0, 1, 2, 3),), "tiles", (1,))
    found = explore([structure], lanes=(32,), budget=20, suggested={"s0": (whole, as_it_is)})
    assert [c.relayouts for c in found] == [c.relayouts for c in explore([structure], lanes=(32,), budget=20)]
    assert [c.proposers for c in found if c.families == ("soa",) and len(c.relayouts[0].buffers) == 4] == [
        ("rules", "search", "tiles")
    ]
