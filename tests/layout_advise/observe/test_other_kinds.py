"""Structures that another call has elsewhere: which they are there, and the layouts that they get."""

from __future__ import annotations

from dataclasses import replace

import pytest

from layout_advise.layoutalgebra.derive.structure import Candidate, Dim, Field, Structure
from layout_advise.layoutalgebra.explore.cost_model import Walk
from layout_advise.layoutalgebra.explore.families import proposals
from layout_advise.layoutalgebra.explore.relayout import relayout
from layout_advise.observe.other_kinds import instances, moved

FIELDS = (Field("a", 0, 8), Field("b", 8, 8))


def array(number: int, base: int, count: int = 100, name: str = "cells", site: str | None = "grid.c:7") -> Structure:
    dims = (Dim(count, 32),)
    return Structure(f"s{number}", name, base, 32 * count, dims, FIELDS, block_base=base, type="cell", alloc_site=site)


MINE = array(0, 0x1000)


def test_what_is_allocated_at_one_place_is_one_structure() -> None:
    (there,) = instances([MINE], [array(3, 0x9000, 25)]).values()
    assert there == replace(MINE, base=0x9000, bytes=800, block_base=0x9000, dims=(Dim(25, 32),))


@pytest.mark.parametrize("base", [0x1000, 0x1100, 0x0F00])
def test_a_block_of_another_size_is_another_block(base: int) -> None:
    """Freed and allocated again for a graph of another size, it begins where the old one did, or within it."""
    (there,) = instances([MINE], [array(3, base, 50)]).values()
    assert there == replace(MINE, base=base, bytes=1600, block_base=base, dims=(Dim(50, 32),))


def test_what_lies_where_a_structure_was_is_not_laid_out() -> None:
    found = instances([MINE], [array(3, 0x1100, 10, name="other", site="list.c:3")])
    assert found == {"s0": None}


@pytest.mark.parametrize(
    "others",
    [
        [MINE],  # where it was
        [array(1, 0x9000, site="grid.c:8")],
        [replace(array(1, 0x9000), kind="global", alloc_site=None)],
        [replace(array(1, 0x9000), name="x", type="other")],
        [],
    ],
)
def test_other_memory_is_none_of_it(others: list[Structure]) -> None:
    assert instances([MINE], others) == {}


@pytest.mark.parametrize(
    "others",
    [
        [array(1, 0x9000, name="left"), array(2, 0xA000, name="right")],  # which of them is it?
        [replace(array(1, 0x9000), fields=(*FIELDS, Field("c", 16, 8)))],
        [replace(array(1, 0x9000), base=0x9010)],
        [replace(array(1, 0x9000), dims=(Dim(5, 192), Dim(5, 32)))],
        [replace(array(1, 0x9000), inexact="the trace is cut")],
    ],
)
def test_what_does_not_fit_is_told(others: list[Structure]) -> None:
    found = instances([MINE], others)
    assert found == {"s0": None}
    assert "lies elsewhere" in str(moved(candidate(), found))


GRID = replace(MINE, dims=(Dim(20, 160), Dim(5, 32)))


@pytest.mark.parametrize(
    ("mine", "there", "found"),
    [
        (GRID, (Dim(7, 96), Dim(3, 32)), (Dim(7, 96), Dim(3, 32))),  # a matrix of another size
        (MINE, (Dim(7, 96), Dim(3, 32)), (Dim(21, 32),)),  # whose rows the other call shows
        (GRID, (Dim(7, 128), Dim(3, 32)), None),
        (replace(GRID, dims=(Dim(20, 192), Dim(5, 32))), (Dim(7, 96), Dim(3, 32)), None),
        (GRID, (Dim(21, 32),), None),
        (GRID, (Dim(7, 192), Dim(2, 96), Dim(3, 32)), None),
    ],
)
def test_rows_of_another_length(mine: Structure, there: tuple[Dim, ...], found: tuple[Dim, ...] | None) -> None:
    """A matrix that is allocated for each call was compared at one call only, where its sizes differ."""
    other = replace(array(1, 0x9000, 21), dims=there)
    (one,) = instances([mine], [other]).values()
    assert (one and one.dims) == found


@pytest.mark.parametrize(
    ("there", "found"),
    [
        ((Dim(7, 96), Dim(3, 32)), {"s0": (Dim(7, 96), Dim(3, 32))}),  # with the sizes of another picture
        ((Dim(7, 160), Dim(5, 32)), {}),  # fewer rows: the layout holds
        ((Dim(7, 128), Dim(3, 32)), {}),
        ((Dim(21, 32),), {}),
    ],
)
def test_a_block_that_stays_may_be_used_with_other_sizes(there: tuple[Dim, ...], found: dict[str, tuple[Dim, ...]]) -> None:
    """A workspace that is allocated once: of eight layouts two were compared, as others hold rows of one length only."""
    for mine in (GRID, replace(GRID, kind="global", alloc_site=None)):
        told = instances([mine], [replace(mine, dims=there)])
        assert {name: one and one.dims for name, one in told.items()} == found


def test_of_two_structures_in_a_block_it_is_not_known_which_has_other_rows() -> None:
    other = replace(GRID, dims=(Dim(7, 96), Dim(3, 32)))
    assert instances([GRID], [other, replace(other, id="s1")]) == {}


def test_names_tell_blocks_of_one_place_apart() -> None:
    two = [array(0, 0x1000, name="old"), array(1, 0x3000, name="new")]
    found = instances(two, [array(0, 0x9000, 10, "new"), array(1, 0xA000, 20, "old")])
    assert {name: there and there.base for name, there in found.items()} == {"s0": 0xA000, "s1": 0x9000}


def candidate() -> Candidate:
    plan = next(p.plan for p in proposals(MINE, Walk(fastest=0), (4,)) if p.families == ("soa",))
    return Candidate("c1", (relayout(MINE, plan),), ("soa",), ())


def test_a_layout_follows_its_structure() -> None:
    there = replace(MINE, base=0x9000, bytes=800, block_base=0x9000, dims=(Dim(25, 32),))
    found = moved(candidate(), {"s0": there})
    assert isinstance(found, Candidate)
    (layout,) = found.relayouts
    assert layout.structure == there
    assert [buffer.bytes for buffer in layout.buffers] == [200, 200]
    assert moved(candidate(), {}) == candidate()
