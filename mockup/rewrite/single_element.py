"""Lane 0 of a loop over several elements, written as a loop over single ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from layout_advise.mockup.evidence.binding import Access, key_of
from layout_advise.mockup.ir.effects import Ty
from layout_advise.mockup.ir.lifted import (
    Assign,
    Call,
    Executed,
    Imm,
    Item,
    Let,
    LetLinear,
    LiftedLoop,
    Linear,
    Load,
    Operand,
    Origin,
    Store,
    Val,
)
from layout_advise.mockup.ir.linear_forms import Form, form_of
from layout_advise.mockup.ir.loop_body import Body, operands
from layout_advise.mockup.rewrite.unrolled_copies import UnrolledCopies

_A = TypeVar("_A", bound=Access)


def access_copies(body: Body, unrolled: UnrolledCopies) -> Iterator[tuple[Access, ...]]:
    """For every access of lane 0 that access in all lanes."""
    for k in unrolled.stores[0]:
        chain = next(m for m, first in enumerate(unrolled.stores[0]) if first == k)
        stores = [body.items[stores[chain]] for stores in unrolled.stores]
        yield tuple(s for s in stores if isinstance(s, Store))
    for number in unrolled.partners[0]:
        loads = [body.defined[partner[number]] for partner in unrolled.partners]
        if isinstance(loads[0], Load):
            yield tuple(load for load in loads if isinstance(load, Load))


@dataclass(frozen=True, slots=True)
class SingleLoop:
    trip: LetLinear
    loop: LiftedLoop
    next: int


class SingleElementWriter:
    """Writes lane 0 as a loop of its own."""

    def __init__(self, body: Body, unrolled: UnrolledCopies, number: int) -> None:
        self.body = body
        self.unrolled = unrolled
        self.next = number
        self.items: list[Item] = []
        self.claimed: set[object] = set()
        self.wanted = self._wanted()

    def loop(self) -> SingleLoop | None:
        """The loop over single elements and its trip count; None where something assigned at the end has no new form."""
        old = self.body.loop
        assert old.trip is not None
        origin = Origin(old.head)
        trip = Val(self._number(), "i64")
        stores = set(self.unrolled.stores[0])
        groups = {group[0].uid: group for group in access_copies(self.body, self.unrolled)}
        for k, item in enumerate(self.body.items):
            if isinstance(item, Assign):
                if not self._assign(item):
                    return None
            elif isinstance(item, Store):
                if k in stores:
                    self.items.append(self._access(item, groups[item.uid]))
            elif isinstance(item, Load) and item.value.number in self.body.names:
                rest: tuple[Executed | None, ...] = (None,) * (self.unrolled.count - 1)
                self.items.append(replace(item, lanes=((*key_of(item), item.part), *rest)))
            elif isinstance(item, Let | LetLinear | Load | Call) and item.value.number in self.wanted:
                self._value(item, groups)
        count = scaled_trip(old.trip, self.unrolled.count)
        loop = LiftedLoop(old.counter, trip, tuple(self.items), old.head)
        return SingleLoop(LetLinear(trip, count, origin), loop, self.next)

    def _wanted(self) -> set[int]:
        """The values of lane 0; of a sum that the counter moves not the steps to it: it is written anew."""
        found: set[int] = set()
        work: list[Operand] = []
        for k in self.unrolled.stores[0]:
            work += operands(self.body.items[k])
        for item in self.body.items:
            if isinstance(item, Assign) and (source := self._first_lane(item.operand)) is not None:
                work.append(source)
        while work:
            operand = work.pop()
            if not isinstance(operand, Val) or operand.number in found or operand.number not in self.body.defined:
                continue
            found.add(operand.number)
            form = self.body.form(operand)
            work += [a for a, _ in form.atoms] if form is not None else operands(self.body.defined[operand.number])
        return found

    def _number(self) -> int:
        self.next += 1
        return self.next - 1

    def _scaled(self, linear: Linear) -> Linear:
        return form_of(linear, self.body.loop.counter).linear(self.body.loop.counter, self.unrolled.count)

    def _access(self, item: _A, group: Sequence[Access]) -> _A:
        lanes: list[Executed | None] = []
        for copy in group:
            # shared by lanes, or by accesses of neighbours: what is at i + 1 in one iteration is at i in the next
            execution = _execution_of(copy)
            lanes.append(None if execution in self.claimed else (*key_of(copy), copy.part))
            self.claimed.add(execution)
        return replace(item, address=self._scaled(item.address), lanes=tuple(lanes))

    def _value(self, item: Let | LetLinear | Load | Call, groups: dict[int, tuple[Access, ...]]) -> None:
        if isinstance(item, Load):
            self.items.append(self._access(item, groups[item.uid]))
        elif isinstance(item, LetLinear):
            self.items.append(replace(item, linear=self._scaled(item.linear)))
        elif (form := self.body.form(item.value)) is not None:
            self._narrow(item.value, form, item.origin)
        else:
            self.items.append(item)

    def _narrow(self, value: Val, form: Form, origin: Origin) -> None:
        """A 32-bit sum that moves with the counter."""
        ty: Ty = "i32"
        index = Val(self._number(), ty)
        self.items.append(Let(index, "lo32", (self.body.loop.counter,), origin))
        terms: list[tuple[Operand, int]] = [(index, form.step // self.unrolled.count), *form.atoms]
        total: Operand = Imm(ty, form.const)
        for k, (atom, coef) in enumerate(terms):
            scaled = atom
            if coef != 1:
                scaled = Val(self._number(), ty)
                self.items.append(Let(scaled, "mul", (atom, Imm(ty, coef % (1 << 32))), origin))
            last = k + 1 == len(terms)
            result = value if last else Val(self._number(), ty)
            self.items.append(Let(result, "add", (scaled, total), origin))
            total = result

    def _assign(self, item: Assign) -> bool:
        """Returns what is left in a variable when the loop is done: the last lane's value, or what all lanes share."""
        operand = item.operand
        if not isinstance(operand, Val) or operand.number not in self.body.defined:
            if operand == self.body.loop.counter:
                return False
            self.items.append(item)
            return True
        first = self._first_lane(operand)
        if first is not None:
            self.items.append(replace(item, operand=first))
            return True
        form = self.body.forms.get(operand.number)
        if (
            form is None
            or form.bits != 64
            or form.step % self.unrolled.count
            or any(self.body.inside(a) for a, _ in form.atoms)
        ):
            return False
        behind = form.step // self.unrolled.count * (self.unrolled.count - 1)
        first_lane = replace(form, const=form.const - behind).linear(self.body.loop.counter, self.unrolled.count)
        value = Val(self._number(), "i64")
        self.items.append(LetLinear(value, first_lane, Origin(self.body.loop.head)))
        self.items.append(replace(item, operand=value))
        return True

    def _first_lane(self, operand: Operand) -> Val | None:
        """The value of lane 0 whose copy in the last lane is ``operand``."""
        if not isinstance(operand, Val) or operand.number not in self.body.defined:
            return None
        for number, last in self.unrolled.partners[-1].items():
            if last == operand.number:
                return Val(number, operand.ty)
        return None


def _execution_of(copy: Access) -> object:
    """Equal for accesses that are one execution of their reference: what was kept from an iteration before and is loaded
    again at several places (:mod:`layout_advise.mockup.rewrite.reload_carried_values`) was loaded once."""
    if isinstance(copy, Load) and copy.turn and copy.turn[-1] < 0:
        return key_of(copy), copy.origin.block, copy.part, copy.turn
    return copy.uid


def scaled_trip(trip: Operand, count: int) -> Linear:
    """A trip count times the number of elements that an iteration did."""
    return Linear(trip.value * count) if isinstance(trip, Imm) else Linear(0, ((trip, count),))
