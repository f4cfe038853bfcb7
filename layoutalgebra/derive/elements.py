"""The size of an element, and where the first one begins.

One reference stands for one place in the element, so an element's size divides all differences of a reference's addresses.
Where vectorised or unrolled code touches several elements alike, the finest period is the element.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd

from layout_advise.layoutalgebra.derive.accesses import ExactAccess, MemoryObjectShape
from layout_advise.layoutalgebra.derive.declared import Declared
from layout_advise.layoutalgebra.derive.undeclared_records import seen_record, visited_record
from layout_advise.layoutalgebra.sets.footprints import places_in

LARGEST_RECORD = 1 << 16
"""Elements of up to so many bytes are looked into place by place."""
LARGEST_PERIOD = 1 << 20
"""Beyond so many bytes no period of the accesses is looked for."""
WIDEST_SCALAR = 8


def declared_strides(declared: Declared | None, total: int) -> tuple[int, ...]:
    """Sizes at which the declaration cuts, ascending: the element (if it has several members) and the array levels."""
    if declared is None or declared.element_bytes < 1:
        return ()
    sizes, size = [], declared.element_bytes
    if len(declared.members) > 1 or declared.dims:
        sizes.append(size)
    for count in reversed(declared.dims[1:]):
        if count < 1:
            break
        size *= count
        sizes.append(size)
    return tuple(s for s in dict.fromkeys(sizes) if s < total)


def element_size(
    uses: Sequence[ExactAccess], obj: MemoryObjectShape, declared: Declared | None, strides: tuple[int, ...]
) -> int:
    """The element's size in bytes. ``strides`` are those of :func:`declared_strides`."""
    grain = gcd(*(u.what.grain for u in uses))
    if grain == 0:
        if declared and 0 < declared.element_bytes <= obj.bytes:  # a pool may have a rest that holds no element
            return declared.element_bytes
        return obj.bytes
    if record := _declared_record(uses, obj, declared, grain):
        return record
    if declared is None and (seen := seen_record(uses, obj.base, obj.bytes, grain)):
        return seen
    if declared is None and (seen := visited_record(uses, obj.base, obj.bytes)):
        return seen
    narrowest = min(u.access.bytes for u in uses)
    if grain < narrowest:  # sliding windows narrower than an access: the grain is the unit
        return grain
    known = [s for s in strides if grain % s == 0 and _periodic(uses, obj.base, grain, s, strict=False)]
    if known:
        return max(known)
    if strides and declared and len(declared.members) > 1:
        # several records are one element where they tile the object: the last ones of it would be in none
        tiled = grain % declared.element_bytes or obj.bytes // declared.element_bytes * declared.element_bytes % grain == 0
        return grain if tiled else declared.element_bytes
    if narrowest > WIDEST_SCALAR:  # vectors, of scalars as declared
        scalar = declared.element_bytes if declared and not declared.members else WIDEST_SCALAR
        narrowest = scalar if scalar in (1, 2, 4) else WIDEST_SCALAR
    periods = (d for d in range(narrowest, grain + 1, narrowest) if grain % d == 0)
    return next((d for d in periods if _periodic(uses, obj.base, grain, d, strict=True)), grain)


def walked_sizes(uses: Sequence[ExactAccess]) -> tuple[int, ...]:
    """Sizes that an undeclared element may have instead of a finer period, the largest first.

    They are the greatest common divisor of the strides of all nests, and that of all differences of a reference's addresses.
    The latter is smaller where a reference goes to another place of the element from one nest to the next. Empty where
    addresses are known as a set only.
    """
    if any(use.what.chosen is not None for use in uses):
        return ()
    stride = gcd(*(stride for use in uses for box in use.what.boxes for stride, _ in box.levels))
    grain = gcd(*(use.what.grain for use in uses))
    return tuple(dict.fromkeys((stride, grain)))


def _declared_record(uses: Sequence[ExactAccess], obj: MemoryObjectShape, declared: Declared | None, grain: int) -> int:
    """The declared record where a reference runs over parts of it (an inner loop over ``position[3]``), so that no stride
    shows it; 0 where an access would straddle two records, or where nothing of one is left untouched and no reference
    stands for one place in it: in a record that is one array, for half of it (what ``memcpy`` does at the ends says
    nothing)."""
    size = declared.element_bytes if declared is not None and len(declared.members) > 1 else 0
    if not 1 < size <= LARGEST_RECORD or size % grain or grain == size or obj.bytes < 2 * size:
        return 0
    covered, single = bytearray(size), bytearray(size)
    for use in uses:
        alone = use.what.grain and use.what.grain % size == 0
        for start in places_in(use.what, obj.base, size):
            if start + use.access.bytes > size:
                return 0
            for marked in (covered, single) if alone else (covered,):
                marked[start : start + use.access.bytes] = b"\1" * use.access.bytes
    least = size // 2 if declared is not None and _is_one_array(declared) else 1
    return size if sum(single) >= least or not all(covered) else 0


def _is_one_array(declared: Declared) -> bool:
    """True for a record with an array for its only member."""
    return len({member.name.partition("[")[0] for member in declared.members}) == 1


def _periodic(uses: Sequence[ExactAccess], base: int, grain: int, period: int, strict: bool) -> bool:
    """True where the bytes touched modulo ``grain`` repeat every ``period``; ``strict``: per kind, equally often."""
    if period == grain:
        return True
    if grain > LARGEST_PERIOD:
        return False
    counts: dict[str, list[int]] = {}
    for use in uses:
        row = counts.setdefault(use.access.kind if strict else "any", [0] * grain)
        start = (use.what.first - base) % grain
        for k in range(min(use.access.bytes, grain)):
            row[(start + k) % grain] += use.what.count
    for row in counts.values():
        for k in range(grain):
            here, there = row[k], row[(k + period) % grain]
            if bool(here) != bool(there) or (strict and abs(here - there) > 16 + max(here, there) // 8):
                return False
    return True


def first_element(uses: Sequence[ExactAccess], obj: MemoryObjectShape, element: int, declared: Declared | None) -> int:
    """The address of the first element: the object's start, or later where an access would straddle two elements."""
    spans = {((u.what.first - obj.base) % element, min(u.access.bytes, element)) for u in uses if u.access.bytes <= element}
    if declared or all(start + size <= element for start, size in spans):
        return obj.base
    shifts = sorted({start for start, _ in spans})
    return obj.base + next((s for s in shifts if all((a - s) % element + b <= element for a, b in spans)), 0)
