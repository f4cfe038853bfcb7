"""Pointers that the code loads again and again from where the call leaves them: a register that the compiler saved before
the region, a member (``s->cells``), a global.

A source in the new layout loads the pointer to the new array there. A mock-up finds the old one. That it makes an index of
it each time, by a division, is no cost of the layout. So the index is made once a call, and loaded where the old pointer is
(``docs/decisions/0134``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from layout_advise.mockup.evidence.binding import Binding, access_bytes, accesses, key_of
from layout_advise.mockup.evidence.streams import hull
from layout_advise.mockup.ir.lifted import Lifted, Linear, Load, Operand, Val
from layout_advise.mockup.ir.linear_forms import signed
from layout_advise.mockup.remap.entered_indices import entry_registers
from layout_advise.mockup.remap.sites import RemapPlan, Site

WORD = 8


def kept_pointers(plan: RemapPlan, lifted: Lifted, binding: Binding) -> Mapping[int, Linear]:
    """By its number each site that starts from nothing but a loaded pointer: the place of that, which is made of registers
    at the entry, and to which nothing was seen to write."""
    loads = {load.value: load for load in accesses(lifted.body) if isinstance(load, Load)}
    wanted = {atom for site in _sites(plan) if isinstance(atom := _single(site.offset), Val)}
    places = {
        value: load.address for value, load in loads.items() if value in wanted and _stays(load, lifted, plan, binding)
    }
    found = {site.number: places.get(atom) for site in _sites(plan) if isinstance(atom := _single(site.offset), Val)}
    return {number: place for number, place in found.items() if place is not None}


def _sites(plan: RemapPlan) -> Iterator[Site]:
    return (site for sites in plan.sites.values() for site in sites if not site.tested and not site.inside)


def _single(offset: Linear) -> Operand | None:
    """The operand that alone makes up an offset, once; None where it is more or less."""
    terms = offset.terms
    return terms[0][0] if len(terms) == 1 and terms[0][1] == 1 else None


def _stays(load: Load, lifted: Lifted, plan: RemapPlan, binding: Binding) -> bool:
    """Returns whether a load is always of one place, which is known at the entry and never written."""
    registers = entry_registers(lifted)
    key = key_of(load)
    known = load.uid not in plan.places and not load.lanes and access_bytes(load) == WORD and key in binding.streams
    if not known or binding.pooled(key):
        return False
    if any(atom not in registers or coef != 1 for atom, coef in load.address.terms) or len(load.address.terms) > 1:
        return False
    low, high = hull(binding.streams[key])
    return low == high and not _written(low, binding) and not _unseen(load, lifted, binding)


def _written(place: int, binding: Binding) -> bool:
    """Returns whether a reference of the traced call, of kept calls too, wrote to the word."""
    for key, reference in binding.reference_of.items():
        if reference.kind == "read" or key not in binding.streams or binding.pooled(key):
            continue
        low, high = hull(binding.streams[key])
        if low < place + WORD and high + reference.bytes > place:
            return True
    return False


def _unseen(load: Load, lifted: Lifted, binding: Binding) -> bool:
    """Returns whether code that the traced call did not come to stores there."""
    for item in accesses(lifted.body):
        if isinstance(item, Load) or key_of(item) in binding.streams or item.address.terms != load.address.terms:
            continue
        if -access_bytes(item) < signed(item.address.const - load.address.const) < WORD:
            return True
    return False
