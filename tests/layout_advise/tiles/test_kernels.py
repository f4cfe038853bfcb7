"""Calibration kernels compute the same in every tile: each against a walk over its elements."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from layout_advise.errors import MachineError
from layout_advise.reports.model.contract import Machine
from layout_advise.tiles.processor import timing
from layout_advise.tiles.processor.shapes import (
    FEW,
    MEMBERS,
    RUN,
    WHOLE,
    ClusterWalk,
    WalkSample,
    fitting,
    shapes,
    tiles_of,
)
from layout_advise.tiles.processor.timing import CalibrationWalk, Walks, samples

TILES = (1, 2, 8, 64, WHOLE)
COUNT = 200
"""No multiple of the longest tile."""


def places(members: int, tile: int, pitch: int) -> NDArray[np.int64]:
    """By element and member, as the layout is defined."""
    at, member = np.arange(COUNT)[:, None], np.arange(members)[None, :]
    if tile == WHOLE:
        return member * pitch + at
    return at // tile * tile * members + member * tile + at % tile


@pytest.fixture(scope="module")
def walks(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[int, int], Walks]:
    folder = tmp_path_factory.mktemp("walks")
    return {key: Walks(*key, TILES, folder) for key in ((3, 4), (2, 8))}


@pytest.mark.parametrize("key", [(3, 4), (2, 8)], ids=["floats", "doubles"])
@pytest.mark.parametrize("trips", [COUNT, 8, 1], ids=["stream", "runs", "picked"])
@pytest.mark.parametrize("tile", TILES)
def test_each_tile_computes_what_elements_one_by_one_do(
    walks: dict[tuple[int, int], Walks], key: tuple[int, int], trips: int, tile: int
) -> None:
    members, size = key
    walk = CalibrationWalk(ClusterWalk(members * size, members, COUNT, trips))
    where = places(members, tile, walk.pitch)
    assert len(np.unique(where)) == members * COUNT  # no two members share a place
    before = walk.data.copy()
    real = before.dtype.type
    expected = before.copy()
    for k in range(COUNT):
        others = expected[where[k, 0]]
        for member in range(1, members - 1):
            others = others + expected[where[k, member]]
        expected[where[k, -1]] = before[where[k, -1]] * real(0.25) + others * real(0.125)
    walks[key].calls(tile, walk, 1)
    assert walk.visited == COUNT
    assert np.array_equal(walk.data, expected)
    assert not np.array_equal(walk.data, before)


def test_calls_go_on_with_other_elements(monkeypatch: pytest.MonkeyPatch, walks: dict[tuple[int, int], Walks]) -> None:
    """What a call left in the caches is not what the next one reads, in whatever tile."""
    monkeypatch.setattr(timing, "MOST_VISITED", 40)
    walk = CalibrationWalk(ClusterWalk(12, 3, COUNT, 8))
    assert (walk.runs, walk.visited, len(walk.starts)) == (5, 40, COUNT // 8)
    where, gone = places(3, 1, walk.pitch), []
    for _ in range(5):
        before = walk.data.copy()
        walks[3, 4].calls(1, walk, 1)
        gone.append({k for k in range(COUNT) if walk.data[where[k, -1]] != before[where[k, -1]]})
    assert [len(one) for one in gone] == [40] * 5
    assert set.union(*gone) == set(range(COUNT))
    walks[3, 4].calls(1, walk, 7)  # and from the first ones on again
    assert walk.gone_on(1) == 2 * 5


def test_tiles_end_where_a_structure_does() -> None:
    assert tiles_of(128) == (1, 2, 4, 8, 16, 32, 64, WHOLE)
    assert tiles_of(1 << 22) == (*(1 << k for k in range(16)), WHOLE)
    assert (fitting(64, 65), fitting(64, 64), fitting(1, 2)) == (64, WHOLE, 1)
    assert WalkSample(ClusterWalk(8, 2, 128, 1), {}).known(4096) == WHOLE


def test_shapes_are_those_of_the_machine() -> None:
    """Of 128 to 16384 elements and beyond the last cache; streams, runs and picked elements."""
    found = shapes(Machine("p", 2, 64, 32 << 10, 1 << 20, 16 << 20))
    assert len(found) == len(set(found)) == len(MEMBERS) * (len(FEW) + 1) * 3
    largest = [one for one in found if one.elements not in FEW]
    assert all(16 << 20 < one.bytes * one.elements <= 32 << 20 for one in largest)
    assert {one.trips for one in largest} - {one.elements for one in largest} == {RUN, 1}
    assert all(one.elements > FEW[-1] for one in shapes(Machine("p", 1, 64, 0, 0, 0)) if one.elements not in FEW)


def test_samples_have_a_time_for_each_tile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAYOUT_ADVISE_CACHE", str(tmp_path))
    wanted = [ClusterWalk(8, 2, 128, 128), ClusterWalk(8, 2, 128, 1)]
    told: list[str] = []
    found = samples(wanted, told.append, rounds=1)
    assert [one.shape for one in found] == wanted
    assert all(tuple(one.times) == tiles_of(128) and min(one.times.values()) > 0 for one in found)
    assert told[-1] == "processor: calibration kernel 2 of 2"
    assert list(tmp_path.iterdir()) == []  # what was built is gone


def test_without_a_compiler_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing, "COMPILER", "no-such-compiler")
    with pytest.raises(MachineError, match="no-such-compiler is not installed"):
        Walks(2, 4, TILES, tmp_path)
