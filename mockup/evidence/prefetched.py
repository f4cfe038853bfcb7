"""Prefetches that go where accesses from the same pointer go.

They are no accesses, and no trace tells where they lead; most start from a pointer by which accesses are made as well.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from layout_advise.mockup.evidence.binding import Binding, accesses, key_of
from layout_advise.mockup.ir.lifted import Assign, Let, LetLinear, Lifted, Linear, Operand, Prefetch, everything


def prefetched(lifted: Lifted, binding: Binding) -> Mapping[int, str]:
    """By the address of a prefetch the structure (id) that all executed accesses go to which start from one of its terms;
    which of these is the pointer is not asked. Nothing of one that no such access tells of."""
    hints = [item for item in everything(lifted.body) if isinstance(item, Prefetch)]
    led = _led(lifted, binding) if hints else {}
    found = defaultdict[int, set[str]](set)
    for item in hints:
        found[item.origin.pc] |= {next(iter(led[one])) for one in _starts(item.address) if len(led.get(one, ())) == 1}
    return {pc: next(iter(names)) for pc, names in found.items() if len(names) == 1 and all(names)}


def _led(lifted: Lifted, binding: Binding) -> Mapping[Operand, set[str]]:
    """By operand the structures that executed accesses reach which start from it; an empty one stands for other memory."""
    sources, found = _sources(lifted), defaultdict[Operand, set[str]](set)
    for access in accesses(lifted.body):
        if key_of(access) in binding.reference_of:
            for operand in _reached(_starts(access.address), sources):
                found[operand].update(binding.reached_by(key_of(access)))
    return found


def _starts(address: Linear) -> tuple[Operand, ...]:
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
            found[item.value] += _starts(item.linear)
    return found


def _reached(begin: Sequence[Operand], sources: Mapping[Operand, Sequence[Operand]]) -> set[Operand]:
    """``begin``, and all that these may have their values from."""
    found, work = set(begin), list(begin)
    while work:
        new = set(sources.get(work.pop(), ())) - found
        found |= new
        work += new
    return found
