"""The loops around an access that change an operand of its address, and whether it is loaded there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from layout_advise.mockup.evidence.binding import Access, Binding
from layout_advise.mockup.ir.lifted import (
    Assign,
    Call,
    Item,
    Let,
    LetLinear,
    Lifted,
    LiftedLoop,
    Load,
    Operand,
    Val,
    Var,
    everything,
)
from layout_advise.mockup.remap.indices.saved_registers import spilled_values


class Levels:
    """The loops that change an operand: the loops a value is defined in, the loops a variable is assigned in."""

    def __init__(self, lifted: Lifted, binding: Binding) -> None:
        self.values: dict[int, tuple[int, ...]] = {}
        self.variables: dict[int, set[int]] = {}
        self.products: dict[int, Let] = {}
        self.restored = spilled_values(lifted, binding)
        self._walk(lifted.body, ())
        self.restored |= dict(_copies(lifted.body))
        framed = {pc for pc, _, why in lifted.skipped if why == "frame"}
        sums = (item for item in everything(lifted.body) if isinstance(item, LetLinear))
        self.saved = {item.value for item in sums if item.origin.pc in framed}
        """Values that were loaded from the frame, of words that are variables now (``rewrite/frame_variables``)."""

    def _walk(self, body: Sequence[Item], loops: tuple[int, ...]) -> None:
        for item in body:
            if isinstance(item, Let | LetLinear | Load | Call):
                self.values[item.value.number] = loops
                if isinstance(item, Let) and item.name == "mul" and item.value.ty == "i64":
                    self.products[item.value.number] = item
            elif isinstance(item, Assign):
                self.variables.setdefault(item.variable.number, set()).update(loops)
            elif isinstance(item, LiftedLoop):
                self.values[item.counter.number] = (*loops, item.uid)
                self._walk(item.body, (*loops, item.uid))

    def terms(self, access: Access) -> tuple[tuple[Operand, int], ...]:
        """Those of its address, with the values that were saved in memory meanwhile as they were before."""
        found: dict[Operand, int] = {}
        for atom, coef in access.address.terms:
            saved = self.restored.get(atom, atom)
            found[saved] = found.get(saved, 0) + coef
        return tuple((atom, coef) for atom, coef in found.items() if coef)

    def level(self, operand: Operand, chain: tuple[LiftedLoop, ...]) -> int:
        """Index in ``chain`` of the innermost loop that changes ``operand``; -1 if none does."""
        changing: set[int] | tuple[int, ...] = ()
        if isinstance(operand, Val):
            changing = self.values.get(operand.number, ())
        elif isinstance(operand, Var):
            changing = self.variables.get(operand.number, ())
        return max((k for k, loop in enumerate(chain) if loop.uid in changing), default=-1)


def _copies(body: Sequence[Item]) -> Iterator[tuple[Operand, Operand]]:
    """Values of loops that are what a variable is, to which nothing in the loop assigns."""
    for loop in (item for item in everything(body) if isinstance(item, LiftedLoop)):
        assigned = {item.variable for item in everything(loop.body) if isinstance(item, Assign)}
        for item in loop.body:
            if isinstance(item, LetLinear) and item.linear.const == 0 and len(item.linear.terms) == 1:
                ((atom, coef),) = item.linear.terms
                if isinstance(atom, Var) and coef == 1 and atom not in assigned:
                    yield item.value, atom


def read_again(atom: Operand, loop: LiftedLoop) -> bool:
    """Returns whether the loop loads the value anew in each iteration, from a place that stays the same (``s->cells``)."""
    load = next((item for item in loop.body if isinstance(item, Load) and item.value == atom), None)
    if load is None:
        return False
    changed = {i.value for i in loop.body if isinstance(i, Let | LetLinear | Load | Call)} | {loop.counter}
    moved = {i.variable for i in loop.body if isinstance(i, Assign)}
    return all((a not in changed and a not in moved) or read_again(a, loop) for a, _ in load.address.terms)


def is_loaded(atom: Operand, loop: LiftedLoop) -> bool:
    """Returns whether the loop loads the value on some path, or a pointer to a record of which it is a member's address, and
    carries it there, or chooses between it and others: of such a pointer an index is made."""
    loaded = {item.value for item in everything(loop.body) if isinstance(item, Load)}
    given: dict[Operand, list[Operand]] = {}
    for item in everything(loop.body):
        if isinstance(item, Assign):
            given.setdefault(item.variable, []).append(item.operand)
        elif isinstance(item, Let) and item.name == "select":
            given[item.value] = list(item.args[1:])
        elif isinstance(item, LetLinear) and [coef for _, coef in item.linear.terms] == [1]:
            given[item.value] = [item.linear.terms[0][0]]
    reached, work = {atom}, [atom]
    while work:
        ahead = [one for one in dict.fromkeys(given.get(work.pop(), ())) if one not in reached]
        reached.update(ahead)
        work += ahead
    return not loaded.isdisjoint(reached)
