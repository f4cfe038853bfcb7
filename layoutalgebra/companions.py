"""Records in arrays of plain numbers (``velocity[3 * i + 1]``), told by what is used beside them.

All accesses to such an array go on by three numbers, which those of a loop written out three times would do as well. Where
the hotspot goes through another array one number at a time in as many steps, an iteration is one element: the array holds
records of three.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from layout_advise.layoutalgebra.derive import Access, Derived
from layout_advise.layoutalgebra.footprints import touched


def records_beside(derived: Sequence[Derived], accesses: Mapping[str, Sequence[Access]]) -> dict[str, int]:
    """By id of a structure: the size of the records that it holds, in bytes. ``accesses`` are those of every structure."""
    found = {}
    for one in derived:
        name, record = one.structure.id, one.steps * one.structure.element_bytes
        if one.steps == 1 or one.structure.bytes % record:
            continue
        trips = {trip for stride, trip in _walks(accesses[name]) if stride == record}
        others = (w for other, uses in accesses.items() if other != name for a in uses for w in _walks([a], a.bytes))
        if any(trip in trips for _, trip in others):
            found[name] = record
    return found


def _walks(accesses: Sequence[Access], stride: int | None = None) -> Iterator[tuple[int, int]]:
    """The steps of the innermost loops over the accesses: by so many bytes (only those by ``stride``), so many times."""
    for access in accesses:
        what = touched(access.stream)
        for box in what.boxes if what is not None else ():
            if box.levels and stride in (None, box.levels[-1][0]):
                yield box.levels[-1]
