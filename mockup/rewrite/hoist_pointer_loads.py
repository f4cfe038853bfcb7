"""Pointers that a loop loads again and again from a place where they stay the same, as they were before the loop.

``out[i].rot = ...; out[i].scale = ...`` on a C++ vector: the compiler cannot know that the first store leaves the vector's
own pointer alone, loads that again in each iteration, and hands it to the next one. The loop then has a variable for a
pointer that never changes, and the accesses through it no index. Where every value that the variable is given is a load from
one address, and nothing in the loop stores there on the traced call, its uses read what was loaded before the loop.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from layout_advise.mockup.evidence.evidence import Evidence
from layout_advise.mockup.evidence.independence import Independence
from layout_advise.mockup.ir.lifted import (
    Assign,
    Atomic,
    Item,
    LetLinear,
    Lifted,
    LiftedLoop,
    Linear,
    Load,
    OpaqueCall,
    Operand,
    RuntimeCall,
    Store,
    Val,
    Var,
    everything,
)
from layout_advise.mockup.ir.loop_body import defined
from layout_advise.mockup.ir.substitution import substituted
from layout_advise.mockup.rewrite.reload_carried_values import straight_before


def hoist_pointer_loads(lifted: Lifted, evidence: Evidence) -> Lifted:
    """Returns ``lifted`` with pointers that loops load anew, and carry, read as they were before the loop.

    Needs: the traced addresses, to show that no store of the loop hits the pointer.
    Gives: addresses in loops that start from values, not from variables.
    Keeps: statements and their order, but for what they read.
    """
    loads = {item.value: item for item in everything(lifted.body) if isinstance(item, Load)}
    moves = [item for item in everything(lifted.body) if isinstance(item, Assign)]
    if not any(move.variable.ty == "i64" and move.operand in loads for move in moves):
        return lifted
    pointers = _Pointers(loads, moves, Independence(evidence.binding, evidence.structures, frozenset()))
    return replace(lifted, body=pointers.items(lifted.body))


class _Pointers:
    """The pass over one hotspot; ``loads`` are all of it, by value, as are ``moves``."""

    def __init__(self, loads: Mapping[Val, Load], moves: Sequence[Assign], independence: Independence) -> None:
        self.loads, self.independence = loads, independence
        self.given = Counter(move.variable for move in moves)

    def items(self, items: Sequence[Item]) -> tuple[Item, ...]:
        """A body, outer loops first: what one of them carries is where the ones in it begin."""
        found: list[Item] = []
        for item in items:
            if isinstance(item, LiftedLoop):
                known = dict(self._steady(found, item))
                if known:
                    body = substituted(item.body, known)
                    item = replace(item, body=substituted(body, {}, dict(self._merged(replace(item, body=body)))))
                item = replace(item, body=self.items(item.body))
            found.append(item)
        return tuple(found)

    def _steady(self, before: Sequence[Item], loop: LiftedLoop) -> Iterator[tuple[Operand, Operand]]:
        """Returns what the loop has of pointers that stay the same, and what these are before it."""
        inside = tuple(everything(loop.body))
        if any(isinstance(i, Atomic | OpaqueCall | RuntimeCall) for i in inside):
            return
        changed = set(defined(loop.body))
        straight = tuple(straight_before(before))
        begins = {i.variable: i.operand for i in reversed(straight) if isinstance(i, Assign)}
        firsts = dict.fromkeys([*begins.values(), *(i.value for i in straight if isinstance(i, Load))])
        given: dict[Var, list[Operand]] = {}
        for item in inside:
            if isinstance(item, Assign):
                given.setdefault(item.variable, []).append(item.operand)
        for first in firsts:
            load = self.loads.get(first) if isinstance(first, Val) and first.ty == "i64" else None
            if load is None or first in changed or any(atom in changed for atom, _ in load.address.terms):
                continue
            alike = {item.value for item in inside if isinstance(item, Load) and _is_like(item, load)}
            fit = {
                v for v in given if v.ty == "i64" and (begins.get(v) == first if v in begins else self._is_inner(v, given))
            }
            while lost := {v for v in fit if any(o not in fit and o not in alike and o != first for o in given[v])}:
                fit -= lost
            if (alike or fit) and self._untouched(load, inside):
                yield from ((value, first) for value in alike)
                yield from ((variable, first) for variable in fit)

    def _merged(self, loop: LiftedLoop) -> Iterator[tuple[Operand, Linear]]:
        """Variables in which ways meet that all give them the same multiple of the counter beyond what is known before."""
        changed = set(defined(loop.body)) - {loop.counter}
        sums = {i.value: i.linear for i in everything(loop.body) if isinstance(i, LetLinear)}
        given: dict[Var, list[Linear | None]] = {}
        for item in everything(loop.body):
            if isinstance(item, Assign) and item.variable.ty == "i64":
                given.setdefault(item.variable, []).append(sums.get(item.operand) if isinstance(item.operand, Val) else None)
        for variable, values in given.items():
            first = values[0]
            if first is None or self.given[variable] != len(values) or any(atom in changed for atom, _ in first.terms):
                continue
            if all(one is not None and _place(one) == _place(first) for one in values):
                yield variable, first

    def _is_inner(self, variable: Var, given: Mapping[Var, Sequence[Operand]]) -> bool:
        """Returns whether a variable has values of the loop only."""
        return self.given[variable] == len(given[variable])

    def _untouched(self, load: Load, inside: Sequence[Item]) -> bool:
        """Returns whether no store of the loop hits what is loaded; those that never ran on the traced call did not."""
        stores = (item for item in inside if isinstance(item, Store))
        return all(not self.independence.ran(s) or self.independence.hulls_apart(s, load) for s in stores)


def _is_like(one: Load, other: Load) -> bool:
    """Returns whether both load the same from the same address."""
    return one.value.ty == other.value.ty and not one.guarded and _place(one.address) == _place(other.address)


def _place(address: Linear) -> tuple[int, dict[Operand, int]]:
    return address.const % (1 << 64), dict(address.terms)
