"""The layout term of folded streams: what :func:`layout_advise.layoutalgebra.derive.derive` is."""

from __future__ import annotations

from collections.abc import Iterable
from math import gcd

from layout_advise.errors import AlgebraError
from layout_advise.layoutalgebra.derive.accesses import Access, MemoryObjectShape
from layout_advise.layoutalgebra.derive.declared import Declared
from layout_advise.layoutalgebra.derive.derive import derive_structure
from layout_advise.layoutalgebra.derive.exact_terms import written_out
from layout_advise.layoutalgebra.sets.footprints import Touched, touched
from layout_advise.layoutalgebra.sets.nests import Stream
from layout_advise.layoutalgebra.terms.grid_boxes import bounded_term, rows_on_grid
from layout_advise.layoutalgebra.terms.term import Term


def derive(
    streams: Iterable[Stream],
    *,
    access_bytes: int = 8,
    bytes: int | None = None,
    base: int | None = None,
    declared: Declared | None = None,
) -> Term:
    """The layout term of what ``streams`` touch, in the units found (at most ``access_bytes``).

    The object is ``[base, base + bytes)``, by default the hull of the streams; factors are cut at ``declared`` sizes too.
    The term's characteristic function is the touched set, always. A set without a pattern becomes one ``S_I``; where even
    that has thousands of pieces, or the set is not known exactly, :class:`AlgebraError` says so with the set's statistics:
    no term is better than a wrong one. Time and memory grow with the nests, not with the accesses.
    """
    items = list(streams)
    found = [t for s in items if (t := touched(s)) is not None]
    if len(found) < len(items) or not found:
        raise AlgebraError("no layout can be derived", "a stream's addresses are not known exactly", "trace a shorter run")
    if access_bytes < 1:
        raise AlgebraError(f"an access of {access_bytes} bytes", "accesses have at least one byte")
    low = min(t.first for t in found) if base is None else base
    size = max(t.last for t in found) + access_bytes - low if bytes is None else bytes
    if size < 1:
        raise AlgebraError(f"a memory object of {size} bytes", "objects have at least one byte")
    if min(t.first for t in found) < low or max(t.last for t in found) + access_bytes > low + size:
        raise AlgebraError(
            "no layout can be derived", "an access leaves the memory object", "give base and bytes of all of it"
        )
    accesses = [Access(s, access_bytes) for s in items]
    derived = derive_structure(MemoryObjectShape("s", "s", low, size), accesses, declared, finer_rows=True)
    return derived.term or _flat(found, low, size, access_bytes)


def _flat(found: list[Touched], base: int, size: int, access_bytes: int) -> Term:
    """The set as one ``S_I`` without any factor, or an error that describes it."""
    unit = gcd(access_bytes, *(t.first - base for t in found), *(t.grain for t in found))
    items, places = [(t, access_bytes) for t in found], size // unit
    rows = rows_on_grid(items, base, unit, [places])
    term = bounded_term(rows, [places]) if rows is not None else written_out(items, base, unit, [places])
    if term is not None:
        return term
    count, span = sum(t.count for t in found), max(t.last for t in found) - min(t.first for t in found)
    why = f"the set is irregular: {count} accesses over {span} bytes in units of {unit}"
    raise AlgebraError("no layout can be derived", why, "look at parts of the object on their own")
