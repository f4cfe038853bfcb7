"""Calibration kernels compiled and timed: tiles in turns, the time that the thread ran, medians."""

from __future__ import annotations

import mmap
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from cffi import FFI
from numpy.typing import NDArray

from layout_advise.errors import MachineError
from layout_advise.mockup.run.build import build
from layout_advise.tiles.processor.kernels import DECLARATION, source
from layout_advise.tiles.processor.shapes import WHOLE, ClusterWalk, WalkSample, tiles_of
from layout_advise.tracer.process.build_cache import cache_folder
from layout_advise.tracer.sampling.turns import own_turn

COMPILER, FLAGS = "gcc", ("-O3",)
"""The compiler of mock-ups; with vectors, as these have them."""
ROUNDS = 9
"""Each tile is timed so often, with all others between."""
BLOCK_NS = 2e5
"""Calls are timed together until they take about so long; a clock of the thread costs half a microsecond."""
MOST_CALLS = 1 << 14
MOST_VISITED = 1 << 16
"""Elements that one call visits where they are picked."""
SEED = 2015
PAGE = mmap.PAGESIZE


class Walks:
    """The walks over clusters of some members, built and loaded."""

    def __init__(self, members: int, size: int, tiles: Sequence[int], folder: Path) -> None:
        """Raises MachineError where the compiler is missing or refuses them."""
        self.tiles = tuple(tiles)
        out = folder / f"walks_{members}_{size}.so"
        built = build(source(members, size, self.tiles), out, COMPILER, FLAGS)
        if built.path is None:
            raise MachineError("cannot calibrate", built.reason or "", "layout-advise doctor")
        self._ffi = FFI()
        self._ffi.cdef(DECLARATION)
        self._library: Any = self._ffi.dlopen(str(built.path))

    def calls(self, tile: int, walk: CalibrationWalk, calls: int) -> float:
        """So many calls of a walk in a tile; ns of the thread that they took in all. Each goes on with the runs behind those
        of the call before, in whatever tile that was: what it left in the caches would else be found there."""
        shape, at = walk.shape, walk.gone_on(calls)
        which = 2 * self.tiles.index(tile) + (walk.runs > 0)
        starts = self._ffi.cast("uint32_t *", walk.starts.ctypes.data)
        data = self._ffi.cast("void *", walk.data.ctypes.data)
        given = (at, walk.runs, len(walk.starts), shape.trips)
        return float(self._library.la_calls(which, data, shape.elements, walk.pitch, starts, *given, calls))


class CalibrationWalk:
    """The data that a walk goes through, which is the same in every tile: what is computed does not change how long it
    takes. ``runs`` in one call begin at elements of ``starts``; 0 for a stream."""

    def __init__(self, shape: ClusterWalk) -> None:
        """Numbers between 0 and 1, and every run once in an order of no order."""
        self.shape = shape
        real = np.dtype(np.float32 if shape.member_bytes == 4 else np.float64)
        self.pitch = -(-shape.elements * real.itemsize // PAGE) * PAGE // real.itemsize
        longest = max(tile for tile in tiles_of(shape.elements) if tile != WHOLE)
        room = shape.members * max(self.pitch, -(-shape.elements // longest) * longest)
        self.data: NDArray[Any] = np.frombuffer(mmap.mmap(-1, room * real.itemsize), real)  # begins with a page
        self.data[:] = np.random.default_rng(SEED).random(room, np.float32)
        stream = shape.trips >= shape.elements
        order = np.random.default_rng(SEED).permutation(1 if stream else shape.elements // shape.trips)
        self.starts = np.ascontiguousarray(order * shape.trips, np.uint32)
        self.runs = 0 if stream else min(len(order), max(1, MOST_VISITED // shape.trips))
        self.visited = shape.elements if stream else self.runs * shape.trips
        self._at = 0

    def gone_on(self, calls: int) -> int:
        """The first run of the next call, behind which there are ``calls``; each begins anew where too few are left."""
        turns = max(1, len(self.starts) // max(self.runs, 1))
        first, self._at = self._at, (self._at + calls) % turns
        return first * self.runs


def sampled(walks: Walks, shape: ClusterWalk, rounds: int = ROUNDS) -> WalkSample:
    """The walk of a shape in every tile: blocks of calls behind one that is not timed, in turns that begin with another tile
    each round; the median of the rounds."""
    walk, tiles = CalibrationWalk(shape), tiles_of(shape.elements)
    once = min(walks.calls(tiles[0], walk, 1) for _ in range(2))
    calls = max(1, min(MOST_CALLS, round(BLOCK_NS / max(once, 1.0))))
    found: dict[int, list[float]] = {tile: [] for tile in tiles}
    for turn in range(rounds):
        first = turn % len(tiles)
        for tile in (*tiles[first:], *tiles[:first]):
            if calls > 1:
                walks.calls(tile, walk, 1)
            found[tile].append(walks.calls(tile, walk, calls))
    return WalkSample(shape, {tile: median(times) / calls / walk.visited for tile, times in found.items()})


def samples(shapes: Sequence[ClusterWalk], tell: Callable[[str], None], rounds: int = ROUNDS) -> list[WalkSample]:
    """All shapes, one after the other, in their order."""
    found: list[WalkSample] = []
    built: dict[tuple[int, int], Walks] = {}
    every = tiles_of(WHOLE)
    cache = cache_folder()  # libraries can be loaded from there
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="calibration-", dir=cache) as folder:
        for number, shape in enumerate(shapes, 1):
            tell(f"processor: calibration kernel {number} of {len(shapes)}")
            key = shape.members, shape.member_bytes
            if key not in built:
                built[key] = Walks(*key, every, Path(folder))
            with own_turn():
                found.append(sampled(built[key], shape, rounds))
    return found
