"""Loops over the fields of an element (``for (k = 0; k < 3; k++) p[i].x[k] += ...``) written out.

In another layout the fields of an element are apart, and no address is linear in ``k`` any more. Where the trip count is a
small constant each iteration gets its own statements, so that every access is one to a single field. That is what the
compiler does with the short loops of a source once each access has an array of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import count

from layout_advise.mockup.evidence.binding import accesses
from layout_advise.mockup.evidence.evidence import Evidence
from layout_advise.mockup.ir.lifted import (
    Assign,
    Atomic,
    Call,
    Goto,
    Imm,
    Item,
    Label,
    Let,
    LetLinear,
    Lifted,
    LiftedLoop,
    Load,
    Operand,
    Store,
    Val,
    everything,
)
from layout_advise.mockup.ir.loop_body import first_free_number
from layout_advise.mockup.ir.substitution import reading, written_out

MOST_ITERATIONS = 16
MOST_STATEMENTS = 600


def unroll_field_loops(lifted: Lifted, evidence: Evidence) -> Lifted:
    """Returns ``lifted`` with its short constant loops over the fields of an element written out.

    Needs: the structure of each access, for the size of its elements.
    Gives: accesses that each go to one field; ``turn`` tells the copies of one reference apart.
    Keeps: the order in which everything is executed.
    """
    unroller = _Unroller(evidence, list(everything(lifted.body)), first_free_number(lifted))
    return replace(lifted, body=unroller.body(lifted.body))


class _Unroller:
    """The pass over one hotspot; numbers of its own follow those that are taken."""

    def __init__(self, evidence: Evidence, items: Sequence[Item], first: int) -> None:
        self.evidence = evidence
        self.values = count(first)
        self.labels = count(max((i.number for i in items if isinstance(i, Label)), default=0) + 1)
        self.groups = count(max((i.group for i in items if isinstance(i, Assign)), default=0) + 1)

    def body(self, items: Sequence[Item]) -> tuple[Item, ...]:
        """A body, inner loops first."""
        found: list[Item] = []
        for item in items:
            if not isinstance(item, LiftedLoop):
                found.append(item)
                continue
            loop = replace(item, body=self.body(item.body))
            found += self._written_out(loop) if self._over_fields(loop) else [loop]
        return tuple(found)

    def _over_fields(self, loop: LiftedLoop) -> bool:
        if not isinstance(loop.trip, Imm) or not 1 < loop.trip.value <= MOST_ITERATIONS:
            return False
        if loop.trip.value * sum(1 for _ in everything(loop.body)) > MOST_STATEMENTS:
            return False
        for access in accesses(loop.body):
            structure = self.evidence.structure(access)
            step = next((coef for atom, coef in access.address.terms if atom == loop.counter), 0)
            if structure is not None and step % structure.element_bytes:
                return True
        return False

    def _written_out(self, loop: LiftedLoop) -> Iterator[Item]:
        assert isinstance(loop.trip, Imm)
        for k in range(loop.trip.value):
            yield from _Copy(self, {loop.counter: Imm("i64", k)}, k).items(loop.body)


class _Copy:
    """One iteration's statements: values, labels and groups of moves are its own; variables are shared."""

    def __init__(self, unroller: _Unroller, known: dict[Operand, Operand], turn: int) -> None:
        self.unroller, self.known, self.turn = unroller, known, turn
        self.labels: dict[int, int] = {}
        self.groups: dict[int, int] = {}

    def items(self, items: Sequence[Item]) -> Iterator[Item]:
        """The statements of a body."""
        self.labels |= {i.number: next(self.unroller.labels) for i in items if isinstance(i, Label)}
        for item in items:
            yield self._item(item)

    def _item(self, item: Item) -> Item:
        item = reading(item, self._operand, lambda linear: written_out(linear, self.known))
        if isinstance(item, LiftedLoop):
            return replace(item, counter=self._new(item.counter), body=tuple(self.items(item.body)))
        if isinstance(item, Label):
            return Label(self.labels[item.number])
        if isinstance(item, Goto):
            return replace(item, label=self.labels.get(item.label, item.label))
        if isinstance(item, Assign):
            return replace(item, group=self._group(item.group))
        if isinstance(item, Load | Store | Atomic):
            item = replace(item, turn=(self.turn, *item.turn))
        if isinstance(item, Let | LetLinear | Call | Load):
            item = replace(item, value=self._new(item.value))
        return item

    def _new(self, value: Val) -> Val:
        made = Val(next(self.unroller.values), value.ty)
        self.known[value] = made
        return made

    def _group(self, group: int) -> int:
        if group not in self.groups:
            self.groups[group] = next(self.unroller.groups)
        return self.groups[group]

    def _operand(self, operand: Operand) -> Operand:
        return self.known.get(operand, operand)
