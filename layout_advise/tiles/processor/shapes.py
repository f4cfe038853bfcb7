"""Clusters that calibration kernels go through, and what they took in each tile."""

from __future__ import annotations

from dataclasses import astuple, dataclass
from itertools import takewhile

from layout_advise.reports.model.contract import Machine

WHOLE = 1 << 30
"""The tile that holds all elements: a structure of arrays. A tile of 1 is an array of structures."""
LONGEST = 1 << 15
"""Elements in the longest tile that is tried."""
FEW = (128, 1024, 16384)
"""Elements of structures that caches may hold."""
RUN = 16
"""Elements one after another that are gone through at places of no order."""
BEYOND, MOST_BYTES = 2, 256 << 20
"""The largest structures are so many times as large as the last cache, but not larger than that."""
UNKNOWN_CACHE = 32 << 20
"""Bytes of a last cache that the machine does not tell of."""
MEMBERS = ((2, 4), (3, 4), (4, 4), (6, 4), (8, 4), (12, 4), (2, 8), (4, 8), (8, 8))
"""Members of a cluster, and the bytes of each."""


@dataclass(frozen=True, slots=True)
class ClusterWalk:
    """A cluster as tiles hang on it: ``bytes`` of an element in it (Kofler's σ), its ``members``, the ``elements`` of the
    structure, and ``trips``, how many of them loops go through one after another before they go on elsewhere: all in a
    stream, 1 where each is picked by an index."""

    bytes: int
    members: int
    elements: int
    trips: int

    @property
    def features(self) -> tuple[float, ...]:
        """The cluster as the tree has it."""
        return tuple(map(float, astuple(self)))

    @property
    def member_bytes(self) -> int:
        """Bytes of one member of a calibration kernel: there all are alike."""
        return self.bytes // self.members


@dataclass(frozen=True, slots=True)
class WalkSample:
    """A calibration kernel: ns an element by tile."""

    shape: ClusterWalk
    times: dict[int, float]

    def known(self, tile: int) -> int:
        """The tile itself; an array of structures for one that no time is known of."""
        return fitting(tile, self.shape.elements)


def fitting(tile: int, elements: int) -> int:
    """``tile`` for so many elements: one that holds all of them is :data:`WHOLE`."""
    return WHOLE if tile >= elements else tile


def tiles_of(elements: int) -> tuple[int, ...]:
    """All tiles for so many elements."""
    powers = (1 << k for k in range(LONGEST.bit_length()))
    return (*takewhile(lambda tile: tile < elements, powers), WHOLE)


def shapes(machine: Machine) -> tuple[ClusterWalk, ...]:
    """The clusters of a calibration of ``machine``: streams, runs, and elements picked one by one, of structures that caches
    hold and of some that they do not."""
    last = max(machine.l3_bytes, machine.l2_bytes) or UNKNOWN_CACHE
    most = min(BEYOND * last, MOST_BYTES)
    return tuple(
        ClusterWalk(members * size, members, elements, trips)
        for members, size in MEMBERS
        for elements in (*FEW, max(2 * FEW[-1], most // (members * size)))
        for trips in (elements, RUN, 1)
    )
