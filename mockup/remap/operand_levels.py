"""The loops around an access that change an operand of its address, and whether it is loaded there."""

from __future__ import annotations

from collections.abc import Sequence

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
from layout_advise.mockup.remap.saved_registers import spilled_values


class Levels:
    """The loops that change an operand: the loops a value is defined in, the loops a variable is assigned in."""

    def __init__(self, lifted: Lifted, binding: Binding) -> None:
        self.values: dict[int, tuple[int, ...]] = {}
        self.variables: dict[int, set[int]] = {}
        self.products: dict[int, Let] = {}
        self.restored = spilled_values(lifted, binding)
        self._walk(lifted.body, ())

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


def read_again(atom: Operand, loop: LiftedLoop) -> bool:
    """Returns whether the loop loads the value anew in each iteration, from a place that stays the same (``s->cells``)."""
    load = next((item for item in loop.body if isinstance(item, Load) and item.value == atom), None)
    if load is None:
        return False
    changed = {i.value for i in loop.body if isinstance(i, Let | LetLinear | Load | Call)} | {loop.counter}
    moved = {i.variable for i in loop.body if isinstance(i, Assign)}
    return all((a not in changed and a not in moved) or read_again(a, loop) for a, _ in load.address.terms)


def is_loaded(atom: Operand, loop: LiftedLoop) -> bool:
    """Returns whether the loop loads the value, or a pointer to a record of which it is a member's address, carries it there
    from a load, or chooses between such values and others from before it: of such a pointer an index is made."""
    defined: dict[Operand, list[tuple[Operand, ...]]] = {}
    loaded: set[Operand] = set()
    for item in everything(loop.body):
        if isinstance(item, Load):
            loaded.add(item.value)
        elif isinstance(item, Assign):
            defined.setdefault(item.variable, []).append((item.operand,))
        elif isinstance(item, Let):
            defined[item.value] = [item.args[1:] if item.name == "select" else (loop.counter,)]
        elif isinstance(item, LetLinear):
            moved = tuple(atom for atom, coef in item.linear.terms if coef == 1)
            defined[item.value] = [moved if len(item.linear.terms) == len(moved) == 1 else (loop.counter,)]
        elif isinstance(item, Call):
            defined[item.value] = [(loop.counter,)]
    reached, work = {atom}, [atom]
    while work:
        for values in defined.get(work.pop(), ()):
            work += [value for value in dict.fromkeys(values) if value not in reached]
            reached.update(values)
    return loop.counter not in reached and not loaded.isdisjoint(reached)
