"""From streams to structures: where elements begin, how large they are, which fields are used, which layout is accessed.

Factors are cut at strides of streams and at declared sizes only, and a field is atomic (design, section 4): the paper's
rules 1-3 alone are not confluent. One reference stands for one place in the element, so an element's size divides all
differences of a reference's addresses; where vectorised or unrolled code touches several elements alike, the finest
period is the element.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import gcd, prod
from typing import Literal

from layout_advise.errors import AlgebraError
from layout_advise.layoutalgebra.derive.atoms import declared_atoms, seen_atoms
from layout_advise.layoutalgebra.derive.declared import Declared
from layout_advise.layoutalgebra.derive.structure import Dim, Field, Slots, Structure
from layout_advise.layoutalgebra.derive.undeclared_records import seen_record
from layout_advise.layoutalgebra.sets.footprints import Touched, mark, places_in, single_rows, touched
from layout_advise.layoutalgebra.sets.nests import Stream
from layout_advise.layoutalgebra.terms.grid_boxes import bounded_term, rows_on_grid
from layout_advise.layoutalgebra.terms.pattern_term import pattern_term
from layout_advise.layoutalgebra.terms.term import MATERIAL, Term

SMALL = 1 << 20
"""Sets of up to this many units are written out: that is faster than arithmetic there."""
LARGEST_RECORD = 1 << 16
"""Elements of up to so many bytes are looked into place by place."""


@dataclass(frozen=True, slots=True)
class MemoryObjectShape:
    """A memory object: ``bytes`` at ``base``; the rest goes into :class:`Structure` as it is."""

    id: str
    name: str
    base: int
    bytes: int
    kind: Literal["heap", "global", "stack", "mapped"] = "heap"
    type: str | None = None
    alloc_site: str | None = None


@dataclass(frozen=True, slots=True)
class Access:
    """One reference's stream within the object; ``bytes`` of one access."""

    stream: Stream
    bytes: int
    kind: Literal["read", "write", "both"] = "read"


@dataclass(frozen=True, slots=True)
class Derived:
    """What :func:`derive_structure` found.

    ``term`` describes exactly the touched units of ``unit_bytes`` on the structure's grid (``None``: irregular or not
    known exactly). ``fastest`` is the dimension that the innermost loops walk, ``gathered`` whether most accesses have no
    regular order; ``note`` says why no rule applies to a plain array. Where each reference to a plain array goes on by a
    multiple of ``steps`` scalars, and that is no power of two as a compiler's unrolling is, records of so many may be stored
    in it: if they are, only a declaration tells.
    """

    structure: Structure
    term: Term | None
    unit_bytes: int
    fastest: int
    gathered: bool
    note: str | None = None
    steps: int = 1


@dataclass(frozen=True, slots=True)
class _Use:
    access: Access
    what: Touched


def derive_structure(
    obj: MemoryObjectShape,
    accesses: Sequence[Access],
    declared: Declared | None = None,
    *,
    inexact: str | None = None,
    finer_rows: bool = False,
    record: int = 0,
) -> Derived:
    """The structure of ``obj`` and the exact term of what ``accesses`` touch of it.

    ``inexact`` (a truncated trace, say) is passed on: then no term is claimed. ``finer_rows`` also looks for rows that the
    folding has taken together by twos or more (checkerboards). ``record`` is the element's size where it is known from
    elsewhere (:mod:`layout_advise.layoutalgebra.derive.companion_arrays`). Raises :class:`AlgebraError` without accesses
    and without a reason why there are none.
    """
    if not accesses and inexact is None:
        raise AlgebraError(f"no accesses to {obj.name}", "a structure is derived from streams")
    uses: list[_Use] = []
    for access in accesses:
        what = touched(access.stream)
        if what is not None and finer_rows:
            finer = single_rows(access.stream)
            what = replace(what, rows=tuple(sorted({finer.get(stride, stride) for stride in what.rows})))
        if what is None:
            inexact = inexact or "a reference's addresses are not known exactly"
        elif what.first < obj.base or what.last + access.bytes > obj.base + obj.bytes:
            inexact = inexact or "a reference leaves the memory object"
        else:
            uses.append(_Use(access, what))
    if not uses:
        return unknown(obj, inexact)
    strides = _declared_strides(declared, obj.bytes)
    element = record or _element(uses, obj, declared, strides)
    base = obj.base + _phase(uses, obj, element, declared)
    fields, cold = _fields(uses, base, element, declared)
    dims = _dims(uses, obj, base, element, strides, fields)
    if dims is None:
        inexact, dims = inexact or "the accesses fit no regular grid", (Dim(1, element),)
    structure = Structure(
        obj.id, obj.name, base, obj.bytes, dims, fields, cold, obj.base, obj.kind, obj.type, obj.alloc_site, inexact
    )
    return _with_term(structure, uses)


def unknown(obj: MemoryObjectShape, why: str | None) -> Derived:
    """A memory object of which nothing is known but that it is touched, and ``why``."""
    origin = (obj.base, obj.kind, obj.type, obj.alloc_site)
    whole = Structure(obj.id, obj.name, obj.base, obj.bytes, (Dim(1, obj.bytes),), (), (), *origin, why)
    return Derived(whole, None, 1, 0, False, why)


def derive_records(
    obj: MemoryObjectShape, accesses: Sequence[Access], declared: Declared | None, element: int, via: Slots
) -> Derived:
    """The structure of objects reached through pointers, with ``element`` bytes from each one to the next at ``obj.base``,
    where they are thought to lie. Raises :class:`AlgebraError` without accesses."""
    if not accesses:
        raise AlgebraError(f"no accesses to {obj.name}", "a structure is derived from streams")
    found = [(access, touched(access.stream)) for access in accesses]
    uses = [_Use(access, what) for access, what in found if what is not None]
    inexact = None if len(uses) == len(found) else "a reference's addresses are not known exactly"
    fields, cold = _fields(uses, obj.base, element, declared)
    dims = (Dim(obj.bytes // element, element),)
    origin = (obj.base, obj.kind, obj.type, obj.alloc_site)
    structure = Structure(obj.id, obj.name, obj.base, obj.bytes, dims, fields, cold, *origin, inexact, via)
    return _with_term(structure, uses)


def plain_reason(structure: Structure) -> str | None:
    """Why no rule applies to ``structure``, or ``None`` where some may."""
    if structure.inexact:
        return structure.inexact
    if structure.count <= 1:
        return "a single element: there is nothing to arrange"
    if _is_plain(structure) and len(structure.dims) == 1:
        return "a plain array of one scalar, accessed as a whole: no rule applies"
    return None


def _is_plain(structure: Structure) -> bool:
    """Whether its elements are single numbers."""
    covered = len(structure.fields) == 1 and structure.fields[0].bytes == structure.element_bytes
    return covered and structure.via is None


def _declared_strides(declared: Declared | None, total: int) -> tuple[int, ...]:
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


def _element(uses: list[_Use], obj: MemoryObjectShape, declared: Declared | None, strides: tuple[int, ...]) -> int:
    """The element's size in bytes."""
    grain = gcd(*(u.what.grain for u in uses))
    if grain == 0:
        if declared and 0 < declared.element_bytes <= obj.bytes:  # a pool may have a rest that holds no element
            return declared.element_bytes
        return obj.bytes
    if record := _record(uses, obj, declared, grain):
        return record
    if declared is None and (seen := seen_record([(u.what, u.access.bytes) for u in uses], obj.base, obj.bytes, grain)):
        return seen
    if grain < min(u.access.bytes for u in uses):  # sliding windows narrower than an access: the grain is the unit
        return grain
    known = [s for s in strides if grain % s == 0 and _periodic(uses, obj.base, grain, s, strict=False)]
    if known:
        return max(known)
    smallest = min(u.access.bytes for u in uses)
    if smallest > 8:  # vectors, of scalars as declared
        smallest = declared.element_bytes if declared and not declared.members and declared.element_bytes in (1, 2, 4) else 8
    if strides and declared and len(declared.members) > 1:
        return grain
    periods = (d for d in range(smallest, grain + 1, smallest) if grain % d == 0)
    return next((d for d in periods if _periodic(uses, obj.base, grain, d, strict=True)), grain)


def _record(uses: list[_Use], obj: MemoryObjectShape, declared: Declared | None, grain: int) -> int:
    """The declared record where a reference runs over parts of it (an inner loop over ``position[3]``), so that no stride
    shows it; 0 where an access would straddle two records, or where nothing of one is left untouched."""
    size = declared.element_bytes if declared is not None and len(declared.members) > 1 else 0
    if not 1 < size <= LARGEST_RECORD or size % grain or grain == size or obj.bytes < 2 * size:
        return 0
    covered = bytearray(size)
    for use in uses:
        for start in places_in(use.what, obj.base, size):
            if start + use.access.bytes > size:
                return 0
            covered[start : start + use.access.bytes] = b"\1" * use.access.bytes
    return 0 if all(covered) else size


def _periodic(uses: list[_Use], base: int, grain: int, period: int, strict: bool) -> bool:
    """Whether the bytes touched modulo ``grain`` repeat every ``period``; ``strict``: per kind, equally often."""
    if period == grain:
        return True
    if grain > 1 << 20:
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


def _phase(uses: list[_Use], obj: MemoryObjectShape, element: int, declared: Declared | None) -> int:
    """Where the first element begins: at the object's start, unless an access would straddle two elements."""
    spans = {((u.what.first - obj.base) % element, min(u.access.bytes, element)) for u in uses if u.access.bytes <= element}
    if declared or all(start + size <= element for start, size in spans):
        return 0
    shifts = sorted({start for start, _ in spans})
    return next((s for s in shifts if all((a - s) % element + b <= element for a, b in spans)), 0)


def _fields(
    uses: list[_Use], base: int, element: int, declared: Declared | None
) -> tuple[tuple[Field, ...], tuple[Field, ...]]:
    """The used and the unused atomic fields of an element."""
    spans: list[tuple[int, int, Access, int]] = []
    for use in uses:
        spans += [
            (start, size, use.access, use.what.count) for start, size in _covered(use.what, use.access.bytes, base, element)
        ]
    covered = [(start, size) for start, size, _, _ in spans]
    atoms = declared_atoms(declared, element, covered) or seen_atoms(covered, element)
    fields: list[Field] = []
    cold: list[Field] = []
    for atom in atoms:
        hits = [(a, n) for start, size, a, n in spans if start < atom.offset + atom.bytes and atom.offset < start + size]
        reads = sum(n for a, n in hits if a.kind in ("read", "both"))
        writes = sum(n for a, n in hits if a.kind in ("write", "both"))
        (fields if hits else cold).append(replace(atom, reads=reads, writes=writes))
    return tuple(fields), tuple(cold)


def covered(stream: Stream, size: int, base: int, element: int) -> tuple[tuple[int, int], ...] | None:
    """The pieces (offset, bytes) of an element of ``element`` bytes that accesses of ``size`` bytes touch; ``base`` is where
    an element begins. ``None`` where its addresses are not known exactly."""
    what = touched(stream)
    return tuple(_covered(what, size, base, element)) if what is not None else None


def _covered(what: Touched, wide: int, base: int, element: int) -> list[tuple[int, int]]:
    grain = what.grain or element
    if grain % element == 0:
        starts: Sequence[int] = ((what.first - base) % element,)
    elif element <= LARGEST_RECORD:
        starts = places_in(what, base, element)
    else:
        first = (what.first - base) % element
        starts = [(first + shift) % element for shift in range(0, element, gcd(grain, element))]
    found: list[tuple[int, int]] = []
    for start in starts:
        if start + wide <= element:
            found.append((start, wide))
            continue
        size = min(wide, element)  # a wide access over several elements
        found.append((start, element - start))
        found.append((0, min(element, size if size == element else start + size - element)))
    return found


def _dims(
    uses: list[_Use], obj: MemoryObjectShape, base: int, element: int, declared: tuple[int, ...], fields: Sequence[Field]
) -> tuple[Dim, ...] | None:
    """The grid: a chain of strides, each a multiple of the next one, and counts from the block (not from the trace)."""
    weight: dict[int, int] = dict.fromkeys((s for s in declared if s > element), 1 << 62)
    for use in uses:
        for stride in use.what.rows:
            weight[stride] = weight.get(stride, 0) + use.what.count
    chain = [element]
    for stride in sorted(weight, key=lambda s: (-weight[s], s)):
        if stride > element and all(max(s, stride) % min(s, stride) == 0 and s != stride for s in chain):
            chain.append(stride)
    chain.sort(reverse=True)
    end = max((f.offset + f.bytes for f in fields), default=element)
    high = max(u.what.last + u.access.bytes for u in uses) - base
    if min(u.what.first for u in uses) < base:
        return None
    while chain:
        counts = [outer // inner for outer, inner in pairwise(chain)]
        extent = sum((n - 1) * s for n, s in zip(counts, chain[1:], strict=True)) + end
        outermost = (obj.base + obj.bytes - base - extent) // chain[0] + 1
        inside = outermost >= 1 and (outermost - 1) * chain[0] + extent >= high
        if inside:
            return tuple(Dim(n, s) for n, s in zip([outermost, *counts], chain, strict=True))
        chain.pop(0)
    return None


def _with_term(structure: Structure, uses: list[_Use]) -> Derived:
    """The exact term on the structure's grid, and how the accesses walk."""
    unit = gcd(structure.element_bytes, *(d.stride for d in structure.dims), *(u.access.bytes for u in uses))
    unit = gcd(unit, *(u.what.first - structure.base for u in uses), *(u.what.grain for u in uses if u.what.grain))
    unit = gcd(unit, *(f.offset for f in structure.fields), *(f.bytes for f in structure.fields))
    walks: dict[int, int] = {}
    for use in uses:
        dim = next((k for k, d in enumerate(structure.dims) if use.what.fastest and use.what.fastest % d.stride == 0), None)
        if dim is not None:
            walks[dim] = walks.get(dim, 0) + use.what.count
    fastest = max(walks, key=lambda k: (walks[k], k)) if walks else len(structure.dims) - 1
    gathered = 2 * sum(u.what.count for u in uses if u.what.chosen is not None) > sum(u.what.count for u in uses)
    sizes = [*(d.count for d in structure.dims), structure.element_bytes // unit]
    term = None if structure.inexact else _term([(u.what, u.access.bytes) for u in uses], structure.base, unit, sizes)
    note, steps = plain_reason(structure), 1
    if _is_plain(structure) and structure.inexact is None and structure.count > 1:
        steps = _odd_part(gcd(*(u.what.grain for u in uses)) // structure.element_bytes)
    if note is not None and steps > 1:
        note = f"a plain array of one scalar, all accesses of which go on in steps of {steps}: it may hold records"
    return Derived(structure, term, unit, fastest, gathered, note, steps)


def _odd_part(number: int) -> int:
    return number // (number & -number) if number else 1


def _term(items: list[tuple[Touched, int]], base: int, unit: int, sizes: list[int]) -> Term | None:
    """The normal form of what is touched: written out where that is small, else by arithmetic; ``None`` if irregular."""
    if prod(sizes) > SMALL and (rows := rows_on_grid(items, base, unit, sizes)) is not None:
        return bounded_term(rows, sizes)
    return written_out(items, base, unit, sizes)


def written_out(items: list[tuple[Touched, int]], base: int, unit: int, sizes: Sequence[int]) -> Term | None:
    """:func:`pattern_term` of all touched units; ``None`` beyond ``MATERIAL`` of them and for irregular sets."""
    import numpy as np

    if prod(sizes) > MATERIAL:
        return None
    bits = np.zeros(prod(sizes), dtype=np.bool_)
    for what, size in items:
        mark(bits, what, base, unit, size)
    return pattern_term(bits, sizes)
