"""The cache lines that are told of a candidate: of walks over all elements only."""

from __future__ import annotations

from dataclasses import replace

import pytest

from layout_advise.describe.shown import traffic
from layout_advise.layoutalgebra.derive.structure import Candidate, Dim, Field, Structure
from tests.support.mockups.native import candidate, relayout

RECORDS = Structure(
    "s0",
    "nodes",
    0x10000,
    64 * 1000,
    (Dim(1000, 64),),
    (Field("x", 0, 8, "double", 1000, 0), Field("y", 8, 8, "double", 0, 0)),
)


def of(structure: Structure) -> Candidate:
    return candidate(relayout(structure, "soa"))


def test_a_walk_over_all_elements_has_lines() -> None:
    assert traffic(of(RECORDS), {}) == (1000, 250)


@pytest.mark.parametrize("accesses", [1, 35, 999])
def test_fewer_accesses_than_elements_do_not_come_to_all_of_them(accesses: int) -> None:
    """A search in a tree that reads 35 numbers was said to touch the lines of all nodes."""
    few = replace(RECORDS, fields=(replace(RECORDS.fields[0], reads=accesses), RECORDS.fields[1]))
    assert traffic(of(few), {}) is None


@pytest.mark.parametrize(("part", "told"), [(0.2, False), (0.99, True)])
def test_elements_that_an_index_picks(part: float, told: bool) -> None:
    assert (traffic(of(RECORDS), {"s0": part}) is not None) is told
