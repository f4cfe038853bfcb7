"""From streams to structures: where elements begin, how large they are, which fields are used, which layout is accessed.

Factors are cut at strides of streams and at declared sizes only, and a field is atomic (design, section 4): the paper's
rules 1-3 alone are not confluent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import gcd

from layout_advise.errors import AlgebraError
from layout_advise.layoutalgebra.derive.accesses import Access, Derived, ExactAccess, MemoryObjectShape
from layout_advise.layoutalgebra.derive.atoms import used_fields
from layout_advise.layoutalgebra.derive.declared import Declared
from layout_advise.layoutalgebra.derive.elements import (
    WIDEST_SCALAR,
    declared_strides,
    element_size,
    first_element,
    walked_sizes,
)
from layout_advise.layoutalgebra.derive.exact_terms import exact_term, walks
from layout_advise.layoutalgebra.derive.grids import grid, row_strides, sibling_rows
from layout_advise.layoutalgebra.derive.scattered_elements import ElementBlock, Slots
from layout_advise.layoutalgebra.derive.structure import Dim, Structure
from layout_advise.layoutalgebra.sets.footprints import touched


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

    Where neither a declaration nor ``record`` tells the element, the larger ones that the nests walk by are tried too, with
    the rows that sibling nests show. The shortest normal form is kept, and the finest element of equally short ones.

    What is declared as single bytes (``char *``) and accessed as wider numbers only is room for something else, of which
    nothing is declared; not where these begin at any byte.
    """
    if not accesses and inexact is None:
        raise AlgebraError(f"no accesses to {obj.name}", "a structure is derived from streams")
    narrowest = min((access.bytes for access in accesses), default=0)
    if declared is not None and declared.element_bytes == 1 and 1 < narrowest <= WIDEST_SCALAR:
        room = replace(obj, type=None)
        found = derive_structure(room, accesses, None, inexact=inexact, finer_rows=finer_rows, record=record)
        if found.structure.element_bytes >= narrowest:
            return found
    uses, why = _exact_uses(obj, accesses)
    inexact = inexact or why
    if not uses:
        return unknown(obj, inexact)
    if finer_rows:
        uses = [_with_single_rows(use) for use in uses]
    levels = declared_strides(declared, obj.bytes)
    element = record or element_size(uses, obj, declared, levels)
    rows = {} if _is_linked(declared) else row_strides(uses, (s for s in levels if s > element))
    found = _on_grid(obj, uses, declared, element, rows, inexact)
    beside = found.steps > 1  # other arrays tell of the records: companion_arrays
    if record or levels or beside or found.structure.inexact or _length(found) == 1:
        return found
    return _shortest(found, obj, uses, declared, rows)


def _is_linked(declared: Declared | None) -> bool:
    """True for records with pointers to records of their own kind (lists, trees, meshes): these are reached by number, and
    that some of them follow each other in steps makes no rows."""
    if declared is None or declared.dims:
        return False
    return any(m.type.endswith("*") and m.type.rstrip("* ") == declared.name for m in declared.members)


def _shortest(
    found: Derived, obj: MemoryObjectShape, uses: Sequence[ExactAccess], declared: Declared | None, rows: dict[int, int]
) -> Derived:
    """The shortest of ``found`` and the normal forms in larger elements, with rows as sibling nests show them or without."""
    element = found.structure.element_bytes
    sizes = walked_sizes(uses)
    larger = [size for size in sizes if size > element and size % element == 0]
    siblings = sibling_rows(box for use in uses for box in use.what.boxes)
    finer = rows | {row: rows[stride] for stride, row in siblings.items() if stride in rows}
    others = [_on_grid(obj, uses, declared, size, cut, None) for cut in (finer, rows) for size in larger]
    best = min((found, *others), key=_length)
    if best is found or best.structure.element_bytes == sizes[-1]:
        return best
    smaller = _on_grid(obj, uses, declared, sizes[-1], rows, None) if sizes[-1] in larger else found
    return replace(best, one_field_each=smaller)


def _exact_uses(obj: MemoryObjectShape, accesses: Sequence[Access]) -> tuple[list[ExactAccess], str | None]:
    """The accesses whose addresses are known exactly and lie in ``obj``, and why some do not."""
    uses: list[ExactAccess] = []
    inexact: str | None = None
    for access in accesses:
        what = touched(access.stream)
        if what is None:
            inexact = inexact or "a reference's addresses are not known exactly"
        elif what.first < obj.base or what.last + access.bytes > obj.base + obj.bytes:
            inexact = inexact or "a reference leaves the memory object"
        else:
            uses.append(ExactAccess(access, what))
    return uses, inexact


def _with_single_rows(use: ExactAccess) -> ExactAccess:
    single = sibling_rows(use.what.boxes)
    return replace(use, what=replace(use.what, rows=tuple(sorted({single.get(row, row) for row in use.what.rows}))))


def _on_grid(
    obj: MemoryObjectShape,
    uses: Sequence[ExactAccess],
    declared: Declared | None,
    element: int,
    strides: dict[int, int],
    inexact: str | None,
) -> Derived:
    """The structure with elements of ``element`` bytes, cut at ``strides``, and the term on its grid."""
    base = first_element(uses, obj, element, declared)
    fields, cold = used_fields(uses, base, element, declared)
    dims = grid(uses, obj, base, strides, fields, element)
    if dims is None:
        inexact, dims = inexact or "the accesses fit no regular grid", (Dim(1, element),)
    elif declared is not None and (number := _only_element(uses, base, dims, declared)) is not None:
        base, dims = base + number * element, (Dim(1, element),)
    origin = (obj.base, obj.kind, obj.type, obj.alloc_site)
    return _with_term(Structure(obj.id, obj.name, base, obj.bytes, dims, fields, cold, *origin, inexact), uses)


def _only_element(uses: Sequence[ExactAccess], base: int, dims: Sequence[Dim], declared: Declared) -> int | None:
    """The number of the only record that ``uses`` go to, where its block is declared by a pointer to it alone: room for more
    says nothing, as it may be the first member of something larger. None where there are others."""
    if declared.dims or not declared.members or len(dims) != 1 or dims[0].stride != declared.element_bytes:
        return None
    first = (min(use.what.first for use in uses) - base) // dims[0].stride
    last = (max(use.what.last + use.access.bytes for use in uses) - 1 - base) // dims[0].stride
    return first if first == last else None


def _length(derived: Derived) -> float:
    return walks(derived.term, derived.structure.element_bytes // derived.unit_bytes)


def unknown(obj: MemoryObjectShape, why: str | None) -> Derived:
    """A memory object of which nothing is known but that it is touched, and ``why``."""
    origin = (obj.base, obj.kind, obj.type, obj.alloc_site)
    whole = Structure(obj.id, obj.name, obj.base, obj.bytes, (Dim(1, obj.bytes),), (), (), *origin, why)
    return Derived(whole, None, 1, 0, False, why)


def derive_records(
    obj: MemoryObjectShape,
    accesses: Sequence[Access],
    declared: Declared | None,
    element: int,
    via: Slots | None = None,
    blocks: tuple[ElementBlock, ...] = (),
) -> Derived:
    """The structure of objects reached through pointers, or of those in several blocks, with ``element`` bytes from each one
    to the next at ``obj.base``, where they are thought to lie. Raises :class:`AlgebraError` without accesses."""
    if not accesses:
        raise AlgebraError(f"no accesses to {obj.name}", "a structure is derived from streams")
    found = [(access, touched(access.stream)) for access in accesses]
    uses = [ExactAccess(access, what) for access, what in found if what is not None]
    inexact = None if len(uses) == len(found) else "a reference's addresses are not known exactly"
    fields, cold = used_fields(uses, obj.base, element, declared)
    dims = (Dim(obj.bytes // element, element),)
    origin = (obj.base, obj.kind, obj.type, obj.alloc_site)
    structure = Structure(obj.id, obj.name, obj.base, obj.bytes, dims, fields, cold, *origin, inexact, via, blocks)
    return _with_term(structure, uses)


def plain_reason(structure: Structure) -> str | None:
    """Why no rule applies to ``structure``, or ``None`` where some may."""
    if structure.inexact:
        return structure.inexact
    if structure.count <= 1:
        return "a single element: there is nothing to arrange"
    if _is_plain(structure) and len(structure.dims) == 1:
        return "a plain array of one scalar, accessed as a whole: no rule applies to it alone"
    return None


def _is_plain(structure: Structure) -> bool:
    """True where its elements are single numbers."""
    covered = len(structure.fields) == 1 and structure.fields[0].bytes == structure.element_bytes
    return covered and structure.placed


def _with_term(structure: Structure, uses: Sequence[ExactAccess]) -> Derived:
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
    term = None if structure.inexact else exact_term([(u.what, u.access.bytes) for u in uses], structure.base, unit, sizes)
    note, steps = plain_reason(structure), 1
    if _is_plain(structure) and structure.inexact is None and structure.count > 1:
        steps = _odd_part(gcd(*(u.what.grain for u in uses)) // structure.element_bytes)
    if note is not None and steps > 1:
        note = f"a plain array of one scalar, all accesses of which go on in steps of {steps}: it may hold records"
    return Derived(structure, term, unit, fastest, gathered, note, steps)


def _odd_part(number: int) -> int:
    return number // (number & -number) if number else 1
