"""Indices that a call brings along: of the elements that its arguments point to.

In a program in the new layout the caller has the index, or the pointer into the new arrays. That a mock-up makes it of an
old pointer, by division, is no cost of the layout. So it is made before the call, outside of what is timed
(``docs/decisions/0106``).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from layout_advise.layoutalgebra.derive.structure import Structure
from layout_advise.mockup.evidence.binding import Access, accesses
from layout_advise.mockup.ir.effects import FS_BASE, Gpr
from layout_advise.mockup.ir.lifted import Lifted, Val
from layout_advise.mockup.remap.links import NO_LINKS, Links
from layout_advise.mockup.remap.sites import ElementPlace, RemapPlan, Site

MOST_ENTERED = 64
"""So many numbers a call brings along at most; what is beyond is made in the call."""
ACCESSES = 20
"""To make an index takes about as long as so many accesses, at most."""


@dataclass(frozen=True, slots=True)
class Entered:
    """The index that the address in general ``register`` makes up at ``site``: its digits from ``slot`` on, and behind them,
    of a tested site, whether it is one of the structure's elements."""

    site: Site
    register: int
    slot: int

    @property
    def inside(self) -> int | None:
        """The slot of that; None where the site is not tested."""
        return self.slot + len(self.site.relayout.structure.dims) if self.site.tested else None

    @property
    def end(self) -> int:
        """The first slot behind."""
        return self.slot + len(self.site.relayout.structure.dims) + self.site.tested


@dataclass(frozen=True, slots=True)
class EnteredCode:
    """The code of the pointer in general ``register``, ``shift`` bytes behind the begin of an element of ``structure``, in
    ``slot``."""

    register: int
    structure: Structure
    shift: int
    slot: int

    @property
    def end(self) -> int:
        """The first slot behind."""
        return self.slot + 1


def entered_codes(links: Links, lifted: Lifted, entered: Mapping[int, Entered]) -> Mapping[Val, EnteredCode]:
    """The codes that a call brings along, by the values that general registers have at the entry; behind what is
    ``entered``."""
    registers, first = entry_registers(lifted), max((one.end for one in entered.values()), default=0)
    found = {
        value: EnteredCode(registers[value], led, links.shifts.get(value, 0), first + k)
        for k, (value, led) in enumerate(links.entered.items())
    }
    return {value: one for value, one in found.items() if one.end <= MOST_ENTERED}


def goes_on_alike(access: Access, place: ElementPlace, entered: Entered) -> bool:
    """Returns whether loops add the same to the new place of an access as to the old one: then both go on from a pointer."""
    start = dict(entered.site.offset.terms)
    moved = {atom: coef for atom, coef in access.address.terms if atom not in start}
    return not place.terms and moved == dict(place.along)


def translated(
    plan: RemapPlan,
    lifted: Lifted,
    entered: Mapping[int, Entered],
    links: Links = NO_LINKS,
    kept: Collection[int] = (),
    each: float = math.inf,
) -> frozenset[str]:
    """Ids of the structures of which addresses are made places one by one: each access is tested, or the index is made of a
    pointer that the innermost loop loads, and that is no link, nor is its site one of those ``kept``; or indices are made
    once a call, in a call of so few accesses (``each``) that these take a part of it."""
    loaded = (plan.places[uid] for uid in plan.by_pointer)
    found = {p.relayout.structure.id for p in loaded if p.site.number not in links.sites and p.site.number not in kept}
    once = {
        (site.relayout.structure.id, site.offset.terms)
        for item in lifted.body
        for site in plan.sites.get(item.uid, ())
        if site.offset.terms and not {site.number} & (entered.keys() | links.sites | set(kept))
    }
    if len(once) * ACCESSES > each:
        found |= {name for name, _ in once}
    for access in accesses(lifted.body):
        place = plan.places.get(access.uid)
        if place is not None and place.within is not None:
            known = entered.get(place.site.number)
            if known is None or not goes_on_alike(access, place, known):
                found.add(place.relayout.structure.id)
    return frozenset(found)


def entry_registers(lifted: Lifted) -> dict[Val, int]:
    """The values that whole general registers have at the entry, with the registers' numbers."""
    return {
        live.value: live.location.number
        for live in lifted.live_ins
        if isinstance(live.location, Gpr) and live.location != FS_BASE and live.half is None and live.value.ty == "i64"
    }


def entered_sites(plan: RemapPlan, lifted: Lifted) -> Mapping[int, Entered]:
    """By its number each site that starts from nothing but a pointer in a general register at the entry. Those that start
    from the same place share their numbers."""
    registers = entry_registers(lifted)
    found: dict[int, Entered] = {}
    known: dict[object, int] = {}
    slot = 0
    for site in (site for sites in plan.sites.values() for site in sites):
        terms = site.offset.terms
        atom = terms[0][0] if len(terms) == 1 and terms[0][1] == 1 else None
        if not isinstance(atom, Val) or atom not in registers:
            continue
        start = (atom, site.offset.const, site.relayout.structure.id, site.tested)
        one = Entered(site, registers[atom], known.get(start, slot))
        if one.end <= MOST_ENTERED:
            found[site.number], known[start], slot = one, one.slot, max(slot, one.end)
    return found
