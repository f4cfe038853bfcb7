"""Records that no declaration tells of, where an inner loop over parts of one hides it (``e[i].node[k]``).

Then no stride of all references shows the element. Accesses of several widths do: an array has elements of one width, and
what is at some places always 4 bytes wide and at others always 8, over and over, has members. Vectors of two are told apart
from members by where they are: they come first and the remainder after them, without a gap.

So do runs that begin here and there (a search that goes from one record to another, and over a vector in each): where they
begin a multiple of one size apart, and never reach the end of what lies between, that is the record.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import gcd

from layout_advise.layoutalgebra.derive.accesses import ExactAccess
from layout_advise.layoutalgebra.sets.footprints import Box, places_in

LARGEST = 1 << 10
"""Records of up to so many bytes: in larger ones, what an inner loop runs over is data with an order of its own."""
FEWEST = 16
"""At so many places at least the runs of a reference have to begin: fewer are apart by some number by chance."""
WIDEST = 8
"""Bytes of the widest scalar; what is wider are vectors, which say nothing of members."""


def seen_record(uses: Sequence[ExactAccess], base: int, total: int, grain: int) -> int:
    """The size of the records that ``uses`` show from ``base`` on, in an object of ``total`` bytes; 0 where they show none,
    or where their strides alone do (``grain``: the greatest common divisor of them all)."""
    widths = {use.access.bytes for use in uses}
    if max(widths) > WIDEST or len(widths) < 2:
        return 0
    boxes = [box for use in uses for box in use.what.boxes]
    if not boxes:
        return 0
    common = set.intersection(*({stride for stride, _ in box.levels} for box in boxes))
    fitting = (s for s in sorted(common) if grain < s <= LARGEST and s < total and total % s == 0)
    return next((s for s in fitting if all(_inside(use, base, s) for use in uses) and _members(uses, base, s)), 0)


def visited_record(uses: Sequence[ExactAccess], base: int, total: int) -> int:
    """The size of the records from ``base`` on, in an object of ``total`` bytes, that ``uses`` go to in no order, over a
    part of each; 0 where they show none."""
    size, runs = 0, []
    for use in uses:
        begins = {box.start for box in use.what.boxes}
        if use.what.chosen is not None or len(begins) < FEWEST:
            return 0
        first = min(begins)
        size = gcd(size, *(begin - first for begin in begins))
        levels = [level for box in use.what.boxes for level in box.levels]
        size = gcd(size, *(stride for stride, _ in levels if stride > use.access.bytes))
        longest = max((trip for stride, trip in levels if stride <= use.access.bytes), default=1)
        runs.append((first, longest * use.access.bytes, longest))
    if not 0 < size <= LARGEST or total % size or max(longest for _, _, longest in runs) == 1:
        return 0
    parts = {((first - base) % size, length) for first, length, _ in runs}
    inside = all(place + length <= size for place, length in parts)
    return size if inside and sum(length for _, length in parts) < size else 0


def _inside(use: ExactAccess, base: int, record: int) -> bool:
    """True where the reference goes from record to record and, in an inner loop, over places of a single one."""
    if use.what.chosen is not None and use.what.grain % record:
        return False
    return all(_stays(box, base, record, use.access.bytes) for box in use.what.boxes)


def _stays(box: Box, base: int, record: int, size: int) -> bool:
    outer = [stride for stride, _ in box.levels if stride >= record]
    reach = sum(stride * (trip - 1) for stride, trip in box.levels if stride < record)
    return (
        min(outer) == record and not any(s % record for s in outer) and (box.start - base) % record + reach + size <= record
    )


def _members(uses: Sequence[ExactAccess], base: int, record: int) -> bool:
    """True where each place is accessed in one width, at a multiple of it, and the widths are not just vectors and their
    remainder: a wider access that stands directly before narrower ones."""
    spans = sorted({(place, use.access.bytes) for use in uses for place in places_in(use.what, base, record)})
    if any(place % size for place, size in spans):
        return False
    if any(here + size > there for (here, size), (there, _) in pairwise(spans)):
        return False
    return any(one < other or (one > other and here + one < there) for (here, one), (there, other) in pairwise(spans))
