"""The part of a frame that calls of which no trace tells may reach: behind the pointers into it that are handed on."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from layout_advise.mockup.ir.lifted import (
    Assign,
    Item,
    Let,
    LetLinear,
    Lifted,
    OpaqueCall,
    Operand,
    Store,
    Val,
    everything,
)
from layout_advise.mockup.ir.linear_forms import signed


def handed_from(lifted: Lifted, rsp: Val, unseen: Collection[int]) -> int | None:
    """The least distance from the stack pointer ``rsp`` at the entry that a pointer has which calls at ``unseen`` addresses
    are handed, or may find in memory; None where there are none. It may reach all that lies behind that pointer."""
    calls = [item for item in everything(lifted.body) if isinstance(item, OpaqueCall) and item.origin.pc in unseen]
    if not calls:
        return None
    known = _pointers(lifted, rsp)
    handed = [operand for call in calls for _, operand in call.args]
    handed += [item.stored for item in everything(lifted.body) if isinstance(item, Store)]
    return min((known[operand] for operand in handed if operand in known), default=None)


def _pointers(lifted: Lifted, rsp: Val) -> Mapping[Operand, int]:
    """The pointers into the frame, with their least distance from ``rsp``."""
    known: dict[Operand, int] = {rsp: 0}
    items, before = list(everything(lifted.body)), 0
    while before != len(known):  # variables carry what is found further down
        before = len(known)
        for item in items:
            for operand, distance in _made(item, known):
                known[operand] = min(distance, known.get(operand, distance))
    return known


def _made(item: Item, known: Mapping[Operand, int]) -> Iterator[tuple[Operand, int]]:
    """Yields the pointers that an item makes of those that are known."""
    if isinstance(item, LetLinear):
        found = [known[atom] for atom, coefficient in item.linear.terms if coefficient == 1 and atom in known]
        yield from ((item.value, distance + signed(item.linear.const)) for distance in found)
    elif isinstance(item, Assign) and item.operand in known:
        yield item.variable, known[item.operand]
    elif isinstance(item, Let) and item.name in ("select", "bitcast"):
        yield from ((item.value, known[operand]) for operand in item.args if operand in known)
