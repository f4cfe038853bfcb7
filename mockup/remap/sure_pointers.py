"""Values that lead into one moved structure as far as the trace tells: what starts from them needs no test of where it goes.

Prefetches are no accesses, and no trace tells where they go; most start from pointers by which accesses are made as well.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from layout_advise.mockup.evidence.binding import Binding, accesses, key_of
from layout_advise.mockup.ir.lifted import Assign, Let, LetLinear, Lifted, Linear, Operand, Prefetch, everything
from layout_advise.mockup.remap.sites import RemapPlan


def sure_pointers(lifted: Lifted, plan: RemapPlan, binding: Binding) -> Mapping[Operand, str]:
    """By operand that prefetches start from the structure (id) that executed accesses from it go to, where none goes
    elsewhere. Which of a sum's terms is the pointer is not asked."""
    wanted = {atom for item in everything(lifted.body) if isinstance(item, Prefetch) for atom in starts(item.address)}
    if not wanted:
        return {}
    sources, found = _sources(lifted), defaultdict[Operand, set[str]](set)
    for access in accesses(lifted.body):
        place = plan.places.get(access.uid)
        if place is None and key_of(access) not in binding.reference_of:
            continue  # it never ran
        name = place.relayout.structure.id if place is not None and place.within is None else ""
        for operand in _reached(starts(access.address), sources):
            found[operand].add(name)
    single = {operand: next(iter(found[operand])) for operand in wanted if len(found[operand]) == 1}
    return {operand: name for operand, name in single.items() if name}


def starts(address: Linear) -> tuple[Operand, ...]:
    """The terms of an address that may be a pointer: what is neither scaled nor taken away."""
    return tuple(atom for atom, coefficient in address.terms if coefficient == 1)


def _sources(lifted: Lifted) -> Mapping[Operand, Sequence[Operand]]:
    """By variable or value what it may be, or be some bytes behind."""
    found = defaultdict[Operand, list[Operand]](list)
    for item in everything(lifted.body):
        if isinstance(item, Assign):
            found[item.variable].append(item.operand)
        elif isinstance(item, Let) and item.name == "select" and item.value.ty == "i64":
            found[item.value] += item.args[1:]
        elif isinstance(item, LetLinear):
            found[item.value] += starts(item.linear)
    return found


def _reached(begin: Sequence[Operand], sources: Mapping[Operand, Sequence[Operand]]) -> set[Operand]:
    """``begin``, and all that these may have their values from."""
    found, work = set(begin), list(begin)
    while work:
        new = set(sources.get(work.pop(), ())) - found
        found |= new
        work += new
    return found
