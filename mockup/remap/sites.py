"""A plan of re-indexing: the sites where indices begin, the places of accesses, and all of a hotspot together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from layout_advise.layoutalgebra.derive.structure import Relayout
from layout_advise.mockup.ir.lifted import Linear, Operand
from layout_advise.mockup.remap.field_runs import RunPiece
from layout_advise.mockup.remap.indices.index_terms import IndexTerm, decompose
from layout_advise.mockup.remap.indices.row_steps import Given


@dataclass(frozen=True, slots=True)
class Site:
    """``offset`` (bytes from the structure's base, field offset taken off) is cut into digits once, before an item; the
    accesses take ``given`` for granted."""

    number: int
    relayout: Relayout
    offset: Linear
    given: tuple[Given, ...] = ()
    tested: bool = False
    """Whether its accesses are those of a place with ``within``: at other addresses its digits mean nothing."""
    inside: bool = False
    """Whether its accesses go on from where it lies in a field that is an array."""
    ahead: tuple[int, ...] = ()
    """By dimension how many elements further on the index is taken (:attr:`RowsSeen.ahead`); empty: by none."""

    @property
    def choice(self) -> tuple[tuple[str, int], ...]:
        """The values that decide which field an address is of, as the compiler would see them: what is added in whole
        elements does not."""
        stride = self.relayout.structure.dims[-1].stride
        terms = ((repr(atom), coef % stride) for atom, coef in self.offset.terms if coef % stride)
        return ((self.relayout.structure.id, stride), *sorted(terms))


@dataclass(frozen=True, slots=True)
class ElementPlace:
    """The place that an access goes to; ``along`` are counters of loops over fields that go on by so many bytes each, and
    values that pick a field."""

    relayout: Relayout
    site: Site
    terms: tuple[IndexTerm, ...]
    pieces: tuple[RunPiece, ...]
    along: tuple[tuple[Operand, int], ...] = ()
    within: tuple[int, int] | None = None
    """The old addresses (first, end) that it stands for, of an access that reaches other memory too: that stays where it
    is, which of both it is is tested at run time."""


@dataclass(frozen=True, slots=True)
class RemapPlan:
    """The places of a hotspot's accesses in a candidate's layout; empty for the identity.

    By statement number: ``places`` of accesses, ``sites`` that are computed before a statement, ``blocks``: the block size
    of a loop that can be strip-mined. ``written`` are (structure id, field number) that the hotspot stores to.
    """

    places: Mapping[int, ElementPlace] = field(default_factory=dict)
    sites: Mapping[int, Sequence[Site]] = field(default_factory=dict)
    blocks: Mapping[int, int] = field(default_factory=dict)
    written: frozenset[tuple[str, int]] = frozenset()
    firsts: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    """By access, the digits of the element where the traced call's first execution of its reference went; those known."""
    lows: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    """By access to a merged structure, the digits of the lowest element where its reference went, and how often it did."""

    still: Mapping[int, tuple[int | None, ...]] = field(default_factory=dict)
    """By access to a grid the index that it always has in each dimension; None where it has several."""
    by_pointer: frozenset[int] = frozenset()
    """The accesses for which an index is made of a pointer that the innermost loop loads, in whose place a source would have
    an index."""
    bounds: Mapping[int, Sequence[Given]] = field(default_factory=dict)
    """What is asked before a statement, where no site can: how often a loop over fields of an element goes on at most, and
    that a value picks one of the fields known."""

    def alike(self, site: Site, other: Site) -> bool:
        """Returns whether what ``site`` and ``other`` start are indices of one element each, in structures that share their
        records: equal terms are added to both, and in the traced call the lowest elements reached are the same."""
        whole = site.relayout.merged
        if whole is None or other.relayout.merged != whole or site.tested or other.tested:
            return False
        there = {(frozenset(p.terms), self.lows.get(uid)) for uid, p in self.places.items() if p.site is other}
        here = {(frozenset(p.terms), self.lows.get(uid)) for uid, p in self.places.items() if p.site is site}
        return any(low is not None for _, low in here & there)

    def apart(self, site: Site, other: Site, distance: int) -> tuple[int, ...] | None:
        """Returns by how many elements in each dimension ``site`` lies from ``other``, where these are ``distance`` bytes
        and differ in nothing else; None where that is not known.

        The distance alone leaves it open where it is about half a row: 15 places back are as well a row back and 14 on.
        """
        dims = site.relayout.structure.dims
        there = {(p.terms, p.along): self.firsts.get(uid) for uid, p in self.places.items() if p.site is other}
        for uid, place in self.places.items():
            one = self.firsts.get(uid) if place.site is site else None
            two = there.get((place.terms, place.along))
            if one is not None and two is not None:
                digits = tuple(a - b for a, b in zip(one, two, strict=True))
                if sum(digit * dim.stride for digit, dim in zip(digits, dims, strict=True)) == distance:
                    return digits
        known = self._known_apart(site, other)
        rest = distance - sum(d * dim.stride for d, dim in zip(known, dims, strict=True) if d is not None)
        open_ = [k for k, digit in enumerate(known) if digit is None]
        found = decompose(rest, tuple(dims[k].stride for k in open_)) if open_ else () if rest == 0 else None
        if found is None or any(k and 2 * abs(digit) >= dims[k].count for k, digit in zip(open_, found, strict=True)):
            return None
        further = dict(zip(open_, found, strict=True))
        return tuple(further[k] if digit is None else digit for k, digit in enumerate(known))

    def _known_apart(self, site: Site, other: Site) -> tuple[int | None, ...]:
        """By dimension how far ``site`` lies from ``other`` where accesses at both always have one index there."""
        there = {(p.terms, p.along): self.still.get(uid) for uid, p in self.places.items() if p.site is other}
        for uid, place in self.places.items():
            one, two = self.still.get(uid), there.get((place.terms, place.along))
            if place.site is site and one is not None and two is not None:
                both = zip(one, two, strict=True)
                return tuple(a - b if a is not None and b is not None else None for a, b in both)
        return (None,) * len(site.relayout.structure.dims)

    def chosen_at_run_time(self, relayout: Relayout) -> bool:
        """Returns whether sites of the structure start from different values: which field is accessed there (``[now]``,
        ``[next]``) was found by the trace, and the compiler of a program in the new layout would not know it."""
        return len({p.site.choice for p in self.places.values() if p.site.relayout is relayout}) > 1
