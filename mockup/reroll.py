"""Vectorised and unrolled loops written as the source had them: one element an iteration.

The hotspot's compiler made B elements of one; lifted lane by lane, its compiler finds the vectors again in the old layout
but often not in a new one. A loop that :mod:`layout_advise.mockup.lanes` recognises becomes a loop over single elements,
where running the lanes one after the other is seen to change nothing: no lane may load or store what another one stores in
the same iteration, unless both orders are the same. Reductions with several accumulators stay as they are: rerolled they
would add in another order. The second product are the loops whose iterations are independent of each other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from layout_advise.layoutalgebra.structure import Structure
from layout_advise.mockup.binding import Access, accesses, bind, key_of
from layout_advise.mockup.effects import Ty
from layout_advise.mockup.forms import Form, form_of
from layout_advise.mockup.independence import Independence, Spot
from layout_advise.mockup.lanes import Body, Lanes, ReadOnly, constant_names, find_lanes, read_by, straight
from layout_advise.mockup.lifted import (
    Assign,
    Call,
    Executed,
    Goto,
    Imm,
    Item,
    Let,
    LetLinear,
    Lifted,
    Linear,
    Load,
    Loop,
    Operand,
    Origin,
    Store,
    Val,
    Var,
)
from layout_advise.tracer.trace import Trace

_A = TypeVar("_A", bound=Access)


def reroll(lifted: Lifted, trace: Trace, structures: Sequence[Structure], read: ReadOnly = lambda at, size: None) -> Lifted:
    """``lifted`` with its loops over several elements rerolled, and independent loops marked.

    ``read(address, size)`` gives bytes of the program that cannot change (its read-only data), for constants kept in
    memory. The result computes the same on the traced call; what the trace does not prove apart is left alone.
    """
    return _Reroller(lifted, trace, structures, read).run()


class _Reroller:
    """The pass over one hotspot."""

    def __init__(self, lifted: Lifted, trace: Trace, structures: Sequence[Structure], read: ReadOnly) -> None:
        self.lifted = lifted
        self.binding = bind(lifted, trace, structures)
        self.elements = {s.id: s.element_bytes for s in structures}
        self.names = constant_names(lifted, read)
        per_key = Counter(key for key, _ in {(key_of(a), home) for a, home in _homes(lifted.body, 0)})
        alone = frozenset(key for key, count in per_key.items() if count == 1)
        self.independence = Independence(self.binding, structures, alone)
        self.next = max(_numbers(lifted), default=0) + 1
        self.uses = Counter(_used(lifted.body))
        self.uses.update(out.operand for out in lifted.live_outs)

    def run(self) -> Lifted:
        """The whole hotspot."""
        return replace(self.lifted, body=self._items(self.lifted.body))

    def _items(self, items: Sequence[Item]) -> tuple[Item, ...]:
        found: list[Item] = []
        for item in items:
            if isinstance(item, Loop):
                found += self._loop(item)
            else:
                found.append(item)
        return tuple(found)

    def _loop(self, loop: Loop) -> list[Item]:
        if any(isinstance(item, Loop) for item in loop.body):
            return [replace(loop, body=self._items(loop.body))]
        before, loop = self._rolled(loop)
        return [*before, replace(loop, independent=self._independent(loop))]

    def _rolled(self, loop: Loop) -> tuple[list[Item], Loop]:
        if not straight(loop):
            return [], loop
        body = Body(loop, self.names)
        lanes = find_lanes(body, self._grain)
        if lanes is None or not self._complete(body, lanes) or not self._order_free(body, lanes):
            return [], loop
        rolled = _Rolled(body, lanes, self.next).loop()
        if rolled is None:
            return [], loop
        self.next = rolled.next
        return [rolled.trip], rolled.loop

    def _grain(self, access: Access, step: int) -> bool:
        """Lanes are whole elements of a structure: copies of one expression for several fields of an element stay."""
        size = self.elements.get(self.binding.structure_of.get(key_of(access), ""))
        return size is None or step % size == 0

    def _complete(self, body: Body, lanes: Lanes) -> bool:
        """Whether the lanes are all that the body does, no value of it is used elsewhere, and all copies of an access belong
        to one structure."""
        covered = {id(body.items[k]) for stores in lanes.stores for k in stores}
        covered |= {id(body.defined[n]) for partner in lanes.partners for n in partner.values()}
        covered |= {id(item) for n, item in body.defined.items() if n in body.names}
        if any(id(item) not in covered for item in body.items if isinstance(item, Load | Store | Call)):
            return False
        inside = Counter(operand for item in body.items for operand in read_by(item))
        used = {o: n for o, n in self.uses.items() if isinstance(o, Val) and o.number in body.defined}
        if any(n != inside[o] for o, n in used.items()):
            return False
        return all(len({self.binding.structure_of.get(key_of(a)) for a in group}) == 1 for group in copies(body, lanes))

    def _order_free(self, body: Body, lanes: Lanes) -> bool:
        """Whether the lanes one after the other load and store the same as in the order of the body."""
        spots = [_Turn(lane, group[0], access) for group in copies(body, lanes) for lane, access in enumerate(group)]
        known: dict[tuple[int, int], bool] = {}
        for k, one in enumerate(spots):
            for other in spots[k + 1 :]:
                stores = isinstance(one.access, Store) or isinstance(other.access, Store)
                if one.access is other.access or not stores:
                    continue
                if one.before(other, body) == (body.position[id(one.access)] < body.position[id(other.access)]):
                    continue
                pair = id(one.access), id(other.access)
                if pair not in known:
                    known[pair] = self.independence.apart(_spot(body, one.access), _spot(body, other.access))
                if not known[pair]:
                    return False
        return True

    def _independent(self, loop: Loop) -> bool:
        """Whether no iteration stores what another one touches."""
        changed = set(_defined(loop.body)) | {loop.counter}
        spots = []
        for access in accesses(loop.body):
            form = form_of(access.address, loop.counter)
            spots.append(Spot(access, form, not any(a in changed for a, _ in form.atoms)))
        stores = [s for s in spots if isinstance(s.access, Store)]
        return bool(stores) and all(self.independence.iterations_apart(s, other) for s in stores for other in spots)


@dataclass(frozen=True, slots=True)
class _Turn:
    """One lane's execution of an access of the rerolled body; ``first`` is the access of lane 0."""

    lane: int
    first: Access
    access: Access

    def before(self, other: _Turn, body: Body) -> bool:
        """Whether it comes first once the loop is rerolled."""
        return (self.lane, body.position[id(self.first)]) < (other.lane, body.position[id(other.first)])


def copies(body: Body, lanes: Lanes) -> Iterator[tuple[Access, ...]]:
    """For every access of lane 0 that access in all lanes."""
    for k in lanes.stores[0]:
        chain = next(m for m, first in enumerate(lanes.stores[0]) if first == k)
        stores = [body.items[stores[chain]] for stores in lanes.stores]
        yield tuple(s for s in stores if isinstance(s, Store))
    for number in lanes.partners[0]:
        loads = [body.defined[partner[number]] for partner in lanes.partners]
        if isinstance(loads[0], Load):
            yield tuple(load for load in loads if isinstance(load, Load))


def _spot(body: Body, access: Access) -> Spot:
    form = body.addresses[id(access)]
    return Spot(access, form, not any(body.inside(a) for a, _ in form.atoms))


@dataclass(frozen=True, slots=True)
class _Made:
    trip: LetLinear
    loop: Loop
    next: int


class _Rolled:
    """Writes lane 0 as a loop of its own."""

    def __init__(self, body: Body, lanes: Lanes, number: int) -> None:
        self.body = body
        self.lanes = lanes
        self.next = number
        self.items: list[Item] = []
        self.wanted = self._wanted()

    def loop(self) -> _Made | None:
        """The loop over single elements and its trip count; None where something assigned at the end has no new form."""
        old = self.body.loop
        assert old.trip is not None
        origin = Origin(old.head)
        trip = Val(self._number(), "i64")
        stores = set(self.lanes.stores[0])
        groups = {id(group[0]): group for group in copies(self.body, self.lanes)}
        for k, item in enumerate(self.body.items):
            if isinstance(item, Assign):
                if not self._assign(item):
                    return None
            elif isinstance(item, Store):
                if k in stores:
                    self.items.append(self._access(item, groups[id(item)]))
            elif isinstance(item, Load) and item.value.number in self.body.names:
                rest: tuple[Executed | None, ...] = (None,) * (self.lanes.count - 1)
                self.items.append(replace(item, lanes=((*key_of(item), item.part), *rest)))
            elif isinstance(item, Let | LetLinear | Load | Call) and item.value.number in self.wanted:
                self._value(item, groups)
        count = _times(old.trip, self.lanes.count)
        loop = Loop(old.counter, trip, tuple(self.items), old.head)
        return _Made(LetLinear(trip, count, origin), loop, self.next)

    def _wanted(self) -> set[int]:
        """The values of lane 0; of a sum that the counter moves not the steps to it: it is written anew."""
        found: set[int] = set()
        work: list[Operand] = []
        for k in self.lanes.stores[0]:
            work += read_by(self.body.items[k])
        for item in self.body.items:
            if isinstance(item, Assign) and (source := self._first_lane(item.operand)) is not None:
                work.append(source)
        while work:
            operand = work.pop()
            if not isinstance(operand, Val) or operand.number in found or operand.number not in self.body.defined:
                continue
            found.add(operand.number)
            form = self.body.form(operand)
            work += [a for a, _ in form.atoms] if form is not None else read_by(self.body.defined[operand.number])
        return found

    def _number(self) -> int:
        self.next += 1
        return self.next - 1

    def _scaled(self, linear: Linear) -> Linear:
        form = form_of(linear, self.body.loop.counter)
        return self._linear(form, form.const)

    def _linear(self, form: Form, const: int) -> Linear:
        step = form.step // self.lanes.count
        counted: tuple[tuple[Operand, int], ...] = ((self.body.loop.counter, step),) if step else ()
        return Linear(const % (1 << 64), (*form.atoms, *counted))

    def _access(self, item: _A, group: Sequence[Access]) -> _A:
        lanes: list[Executed | None] = []
        for k, copy in enumerate(group):
            shared = any(copy is earlier for earlier in group[:k])
            lanes.append(None if shared else (*key_of(copy), copy.part))
        return replace(item, address=self._scaled(item.address), lanes=tuple(lanes))

    def _value(self, item: Let | LetLinear | Load | Call, groups: dict[int, tuple[Access, ...]]) -> None:
        if isinstance(item, Load):
            self.items.append(self._access(item, groups[id(item)]))
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
        terms: list[tuple[Operand, int]] = [(index, form.step // self.lanes.count), *form.atoms]
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
        """What is left in a variable when the loop is done: the last lane's value, or what all lanes share."""
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
            or form.step % self.lanes.count
            or any(self.body.inside(a) for a, _ in form.atoms)
        ):
            return False
        behind = form.step // self.lanes.count * (self.lanes.count - 1)
        value = Val(self._number(), "i64")
        self.items.append(LetLinear(value, self._linear(form, form.const - behind), Origin(self.body.loop.head)))
        self.items.append(replace(item, operand=value))
        return True

    def _first_lane(self, operand: Operand) -> Val | None:
        """The value of lane 0 whose copy in the last lane is ``operand``."""
        if not isinstance(operand, Val) or operand.number not in self.body.defined:
            return None
        for number, last in self.lanes.partners[-1].items():
            if last == operand.number:
                return Val(number, operand.ty)
        return None


def _times(trip: Operand, count: int) -> Linear:
    return Linear(trip.value * count) if isinstance(trip, Imm) else Linear(0, ((trip, count),))


def _homes(items: Sequence[Item], home: int) -> Iterator[tuple[Access, int]]:
    """Every access with the loop whose body it is directly in."""
    for item in items:
        if isinstance(item, Load | Store):
            yield item, home
        elif isinstance(item, Loop):
            yield from _homes(item.body, id(item))


def _defined(items: Sequence[Item]) -> Iterator[Operand]:
    """The values and variables that the items of an innermost loop define."""
    for item in items:
        if isinstance(item, Let | LetLinear | Load | Call):
            yield item.value
        elif isinstance(item, Assign):
            yield item.variable


def _used(items: Sequence[Item]) -> Iterator[Operand]:
    for item in items:
        if isinstance(item, Loop):
            if item.trip is not None:
                yield item.trip
            yield from _used(item.body)
        elif isinstance(item, Goto):
            if item.condition is not None:
                yield item.condition
        else:
            yield from read_by(item)


def _numbers(lifted: Lifted) -> Iterator[int]:
    yield from (live.value.number for live in lifted.live_ins)
    work = list(lifted.body)
    while work:
        item = work.pop()
        if isinstance(item, Loop):
            yield item.counter.number
            work += item.body
        elif isinstance(item, Let | LetLinear | Load | Call):
            yield item.value.number
        elif isinstance(item, Assign):
            yield item.variable.number
        yield from (o.number for o in read_by(item) if isinstance(o, Val | Var))
