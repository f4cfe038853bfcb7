"""Records in arrays of plain numbers (``velocity[3 * i + 1]``), told by what is used of and beside them.

All accesses to such an array go on by three numbers, which those of a loop written out three times would do as well. It
holds records of three where an iteration is one of its elements:

- the hotspot goes through another array one number, or one structure, at a time, in as many steps;
- an iteration takes single numbers of several places, all together one of each of the three (``f[9 * (i - 1) + 1]``,
  ``f[9 * (i + row) + 2]``, ... of a lattice Boltzmann step). Loops written out use runs of numbers at every place;
- another array, of which this is known, holds records of as many, and is gone through in as many steps; also where a
  compiler took several records in one (clang's vectors store what four cells get in sixteen bytes each, one after another,
  which alone would be any plain array).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from layout_advise.layoutalgebra.derive.accesses import Access, Derived
from layout_advise.layoutalgebra.sets.footprints import Box, touched

MOST_AT_ONCE = 16
"""So many records a compiler takes in one iteration at most: the floats in the widest vectors."""


def records_beside(derived: Sequence[Derived], accesses: Mapping[str, Sequence[Access]]) -> dict[str, int]:
    """By id of a structure: the size of the records that it holds, in bytes. ``accesses`` are those of every structure."""
    maybe = {d.structure.id: d for d in derived if d.steps > 1 and d.structure.bytes % _record(d) == 0}
    ways = {name: set(_by_records(accesses[name], _record(d))) for name, d in maybe.items()}
    trips = {name: {trip for records, trip in found if records == 1} for name, found in ways.items()}
    found = {}
    for name, one in maybe.items():
        others = [w for other, uses in accesses.items() if other != name for a in uses for w in _walks([a], a.bytes)]
        for other in derived:
            if other.structure.id != name:
                others += _walks(accesses[other.structure.id], other.structure.element_bytes)
        if any(trip in trips[name] for _, trip in others) or _apart(accesses[name], one):
            found[name] = _record(one)
    known = {(maybe[name].steps, way) for name in found for way in ways[name]}
    for name, one in maybe.items():
        if any((one.steps, way) in known for way in ways[name]):
            found[name] = _record(one)
    return found


def _record(one: Derived) -> int:
    return one.steps * one.structure.element_bytes


def _by_records(accesses: Sequence[Access], record: int) -> Iterator[tuple[int, int]]:
    """The steps of the innermost loops, in records: by so many, so many times."""
    for stride, trip in _walks(accesses):
        if stride > 0 and stride % record == 0 and stride // record <= MOST_AT_ONCE:
            yield stride // record, trip


def _apart(accesses: Sequence[Access], one: Derived) -> bool:
    """True where the accesses of an iteration take each place of a record, but not in runs of as many numbers."""
    iterations: dict[tuple[object, ...], set[int]] = {}
    for access in accesses:
        boxes = _boxes(access)
        if not boxes or not boxes[0].levels:
            continue
        first = boxes[0].start
        alike = tuple((box.start - first, box.levels) for box in boxes)
        numbers = range(first, first + access.bytes, one.structure.element_bytes)
        iterations.setdefault(alike, set()).update(at // one.structure.element_bytes for at in numbers)
    return any(len({n % one.steps for n in taken}) == one.steps > _shortest(taken) for taken in iterations.values())


def _shortest(numbers: set[int]) -> int:
    """The length of the shortest run of neighbours."""
    ends = [n for n in sorted(numbers) if n + 1 not in numbers]
    starts = [n for n in sorted(numbers) if n - 1 not in numbers]
    return min(end - start + 1 for start, end in zip(starts, ends, strict=True))


def _walks(accesses: Sequence[Access], stride: int | None = None) -> Iterator[tuple[int, int]]:
    """The steps of the innermost loops over the accesses: by so many bytes (only those by ``stride``), so many times."""
    for access in accesses:
        for box in _boxes(access):
            if box.levels and stride in (None, box.levels[-1][0]):
                yield box.levels[-1]


def _boxes(access: Access) -> tuple[Box, ...]:
    what = touched(access.stream)
    return what.boxes if what is not None else ()
