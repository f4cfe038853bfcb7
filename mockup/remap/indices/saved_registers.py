"""Registers that the compiler saved in memory: a value loaded from where it was stored before.

Code that has more pointers alive than there are registers stores some before a loop and loads them in it. An index made of
the loaded value would be divided out anew at each iteration, where a source in the new layout has it before the loop.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from layout_advise.mockup.evidence.binding import Access, Binding, access_bytes, key_of
from layout_advise.mockup.evidence.streams import hull
from layout_advise.mockup.ir.lifted import (
    Atomic,
    Goto,
    Item,
    Label,
    Lifted,
    LiftedLoop,
    Linear,
    Load,
    OpaqueCall,
    Operand,
    RuntimeCall,
    Store,
    Val,
    everything,
)

WORD = 8


def spilled_values(lifted: Lifted, binding: Binding) -> dict[Operand, Operand]:
    """By loaded value, the value that was stored in its place: before a loop, in an iteration of which it is loaded. Nothing
    between them may write there, by its address or by the traced ones, nor be jumped to from elsewhere."""
    found: dict[Operand, Operand] = {}
    jumps = Counter(item.label for item in everything(lifted.body) if isinstance(item, Goto))
    for body in (lifted.body, *(item.body for item in everything(lifted.body) if isinstance(item, LiftedLoop))):
        saved = [(number, item) for number, item in enumerate(body) if isinstance(item, Store) and _is_saved(item)]
        parts = [(item, tuple(everything((item,)))) for item in body] if saved else []
        for number, store in saved:
            found.update(_loads(store, parts[number + 1 :], binding, jumps))
    return found


def _is_saved(store: Store) -> bool:
    """Returns whether it stores a whole register at a place that is known where it is stored."""
    known = isinstance(store.stored, Val) and all(isinstance(atom, Val) for atom, _ in store.address.terms)
    return known and access_bytes(store) == WORD and not store.lanes


def _loads(
    store: Store, after: Sequence[tuple[Item, Sequence[Item]]], binding: Binding, jumps: Counter[int]
) -> Iterator[tuple[Operand, Operand]]:
    """The loads of what was stored, in loops that come after it before anything could change it. ``after`` are the
    statements, each with all that is in it; ``jumps`` counts those to each label: they all have to come after it too."""
    passed: Counter[int] = Counter()
    for item, inside in after:
        if isinstance(item, Label) and passed[item.number] < jumps[item.number]:
            return
        if not all(_leaves(store, one, binding) for one in inside):
            return
        passed.update(one.label for one in inside if isinstance(one, Goto))
        if isinstance(item, LiftedLoop):
            for one in inside:
                if isinstance(one, Load) and one.address == store.address and access_bytes(one) == WORD and not one.lanes:
                    yield one.value, store.stored


def _leaves(store: Store, item: Item, binding: Binding) -> bool:
    """Returns whether the statement leaves what was stored as it is."""
    if isinstance(item, OpaqueCall | RuntimeCall | Atomic):
        return False
    return not isinstance(item, Store) or _apart(store.address, item) or _traced_apart(store, item, binding)


def _apart(place: Linear, other: Store) -> bool:
    """Returns whether the addresses differ by a constant that is more than either is wide."""
    if place.terms != other.address.terms:
        return False
    distance = (other.address.const - place.const + (1 << 63)) % (1 << 64) - (1 << 63)
    return distance >= WORD or distance <= -access_bytes(other)


def _traced_apart(store: Store, other: Store, binding: Binding) -> bool:
    """Returns whether no traced address of one meets one of the other."""
    one, two = _span(store, binding), _span(other, binding)
    return one is not None and two is not None and (one[1] <= two[0] or two[1] <= one[0])


def _span(access: Access, binding: Binding) -> tuple[int, int] | None:
    stream = binding.streams.get(key_of(access))
    if stream is None or access.lanes:
        return None
    low, high = hull(stream)
    return low, high + binding.reference_of[key_of(access)].bytes
