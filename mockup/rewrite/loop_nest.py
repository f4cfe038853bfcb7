"""A loop around other loops, with all statements below it."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from layout_advise.mockup.ir.lifted import (
    Assign,
    Call,
    Item,
    Let,
    LetLinear,
    LiftedLoop,
    Linear,
    Load,
    Operand,
    Store,
    Val,
    Var,
)
from layout_advise.mockup.ir.linear_forms import Form, form_of
from layout_advise.mockup.ir.loop_body import Names, operands

Path = tuple[int, ...]
"""The loops around a statement, by their numbers, within the outer one."""
_COPIED = (Let, LetLinear, Load, Store, Call, Assign, LiftedLoop)


@dataclass(frozen=True, slots=True)
class Nest:
    """All statements below the outer ``loop`` with the loops around them; which of them defines a value, and which assign a
    variable."""

    loop: LiftedLoop
    items: tuple[tuple[Item, Path], ...]
    names: Names
    values: Mapping[int, tuple[Item, Path]]
    assigns: Mapping[Var, tuple[tuple[Assign, Path], ...]]

    @classmethod
    def of(cls, loop: LiftedLoop, names: Names) -> Nest | None:
        """``names`` are those of the program's constants. None where there is no loop in it, or a statement of another
        kind."""
        items = tuple(_below(loop.body, ()))
        plain = all(isinstance(item, _COPIED) and not _is_odd(item) for item, _ in items)
        if loop.trip is None or not plain or not any(isinstance(item, LiftedLoop) for item, _ in items):
            return None
        values = {item.value.number: (item, path) for item, path in items if isinstance(item, Let | LetLinear | Load | Call)}
        assigns: dict[Var, tuple[tuple[Assign, Path], ...]] = {}
        for item, path in items:
            if isinstance(item, Assign):
                assigns[item.variable] = (*assigns.get(item.variable, ()), (item, path))
        return cls(loop, items, names, values, assigns)

    def hands_on_nothing(self) -> bool:
        """Returns whether each variable is assigned in an iteration of the outer loop before it is read."""
        return self._assigned_first(self.loop.body, set())

    def _assigned_first(self, items: Sequence[Item], known: set[Operand]) -> bool:
        moved: list[Assign] = []  # in parallel
        for item in items:
            if moved and not (isinstance(item, Assign) and item.group == moved[-1].group):
                known.update(one.variable for one in moved)
                moved = []
            if any(isinstance(o, Var) and o in self.assigns and o not in known for o in operands(item)):
                return False
            if isinstance(item, Assign):
                moved.append(item)
            elif isinstance(item, LiftedLoop) and not self._assigned_first(item.body, set(known)):  # it may run no time
                return False
        return True

    def trips(self) -> Iterator[Operand]:
        """How often the inner loops run."""
        yield from (item.trip for item, _ in self.items if isinstance(item, LiftedLoop) and item.trip is not None)

    def counts(self, operand: Operand) -> bool:
        """Returns whether an operand is the counter of an inner loop."""
        return any(isinstance(item, LiftedLoop) and item.counter == operand for item, _ in self.items)

    def form(self, linear: Linear) -> Form:
        """A sum by how far the outer loop moves it."""
        return form_of(linear, self.loop.counter)

    def inside(self, operand: Operand) -> bool:
        """Returns whether an operand is defined below the outer loop, and is no counter and no constant."""
        if isinstance(operand, Val):
            return operand.number in self.values and operand.number not in self.names
        return operand in self.assigns

    def constant(self, operand: Operand) -> Hashable | None:
        """Equal for equal constants that are no numbers in the code; None for what is none."""
        return self.names.get(operand.number) if isinstance(operand, Val) else None


def _below(items: Sequence[Item], path: Path) -> Iterator[tuple[Item, Path]]:
    for item in items:
        yield item, path
        if isinstance(item, LiftedLoop):
            yield from _below(item.body, (*path, item.uid))


def _is_odd(item: Item) -> bool:
    """Returns whether a statement is of a kind of which no lanes are looked for."""
    if isinstance(item, LiftedLoop):
        return item.trip is None
    return isinstance(item, Load | Store) and (bool(item.lanes) or (isinstance(item, Load) and item.guarded))
