"""Loops around loops of which a compiler does several iterations side by side, written as one iteration again.

A sum over the columns of a matrix goes down one column in the inner loop, and the next column lies beside it: compilers take
two or four columns at a time, through one inner loop. With the matrix turned no compiler does that, and a mock-up that still
had two sums side by side claimed twice what the layout gains. So the lanes become iterations of the outer loop again.

Lanes are statements side by side in the same loops, equal but for their addresses, which lie as far apart as a lane in a
loop over single elements would move, and for the values and variables that they define. An outer iteration hands nothing to
the next one, nothing that is defined in it is used behind it, and no lane stores what another one accesses.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import gcd

from layout_advise.mockup.evidence.binding import Access, access_bytes, key_of
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
    Store,
    Val,
    Var,
)
from layout_advise.mockup.ir.linear_forms import Form, signed
from layout_advise.mockup.ir.loop_body import Names, defined
from layout_advise.mockup.rewrite.loop_nest import Nest, Path
from layout_advise.mockup.rewrite.unrolled_copies import COMMUTATIVE, MOST_COPIES

Grain = Callable[[Sequence[Access], int], bool]
"""Whether the copies of an access may move by so many bytes from one to the next."""
Apart = Callable[[Access, Access], bool]
"""Whether two accesses never touch the same bytes, by where the traced ones went."""


def reroll_around(
    loop: LiftedLoop, names: Names, grain: Grain, apart: Apart, behind: Container[Operand]
) -> tuple[LiftedLoop, int] | None:
    """The loop with one of its lanes for a body, and how many it has; its trip count is still the old one. None where the
    body is not several lanes of anything. ``names`` are those of constants, ``behind`` is what is read outside the loop."""
    nest = Nest.of(loop, names)
    if nest is None or any(o in behind for o in defined(loop.body)) or not nest.hands_on_nothing():
        return None
    stores = [item for item, _ in nest.items if isinstance(item, Store)]
    for count in range(min(len(stores), MOST_COPIES), 1, -1):
        if len(stores) % count == 0:
            lanes = _Lanes(nest, count, grain)
            if lanes.match() and lanes.are_all() and lanes.are_apart(apart):
                return replace(loop, body=tuple(lanes.single(loop.body, 0))), count
    return None


@dataclass(slots=True)
class _Lanes:
    """Tries one number of lanes."""

    nest: Nest
    count: int
    grain: Grain
    chains: list[list[tuple[Store, Path]]] = field(default_factory=list)
    partners: list[dict[Operand, Operand]] = field(default_factory=list)
    """Of each lane what is which value or variable of the first one."""

    def match(self) -> bool:
        """Finds the lanes from where the stores go."""
        if not self._chained():
            return False
        for lane in range(self.count):
            self.partners.append({})
            if not all(self._equal(chain[0][0].stored, chain[lane][0].stored, lane) for chain in self.chains):
                return False
            if not all(self._equal(trip, trip, lane) for trip in self.nest.trips()):
                return False
        return self._are_disjoint()

    def _are_disjoint(self) -> bool:
        """Returns whether each lane has its values and variables for itself, but for those that are the same in all."""
        seen = set(self.partners[0])
        for partner in self.partners[1:]:
            own = [there for first, there in partner.items() if there != first]
            if len(set(own)) != len(own) or not seen.isdisjoint(own):
                return False
            seen.update(own)
        return True

    def _chained(self) -> bool:
        """Puts the stores of one kind in the order of their lanes."""
        groups: dict[object, dict[int, tuple[Store, Path]]] = {}
        for item, path in self.nest.items:
            if isinstance(item, Store):
                form = self.nest.form(item.address)
                step = self._step(form)
                if not step or any(self.nest.inside(atom) for atom, _ in form.atoms):
                    return False
                at = groups.setdefault((item.ty, step, path, item.turn, frozenset(form.atoms)), {})
                if form.number() in at:
                    return False
                at[form.number()] = item, path
        for kind, at in groups.items():
            assert isinstance(kind, tuple)
            step = kind[1]
            while at:
                first = min(at, key=lambda number: number if step > 0 else -number)
                wanted = [first + lane * step for lane in range(self.count)]
                if any(number not in at for number in wanted):
                    return False
                self.chains.append([at.pop(number) for number in wanted])
                if not self.grain([store for store, _ in self.chains[-1]], step):
                    return False
        return bool(self.chains)

    def _step(self, form: Form) -> int | None:
        """How far the form moves from one lane to the next; None where that is no whole number."""
        return form.step // self.count if form.step % self.count == 0 else None

    def _equal(self, first: Operand, here: Operand, lane: int) -> bool:
        """Returns whether an operand of ``lane`` is what ``first`` is in the first one."""
        constant = self.nest.constant(first)
        if constant is not None and constant == self.nest.constant(here):
            return True
        if not self.nest.inside(first):
            return first == here and (not lane or first != self.nest.loop.counter)
        partner = self.partners[lane]
        if first in partner:
            return partner[first] == here
        if isinstance(first, Imm) or isinstance(here, Imm) or first.ty != here.ty:
            return False
        partner[first] = here
        if isinstance(first, Var):
            some, others = (self.nest.assigns.get(one, ()) for one in (first, here) if isinstance(one, Var))
            return len(some) == len(others) and all(
                path == there and self._equal(a.operand, b.operand, lane)
                for (a, path), (b, there) in zip(some, others, strict=True)
            )
        if not isinstance(here, Val) or here.number not in self.nest.values:
            return False
        (one, path), (other, there) = self.nest.values[first.number], self.nest.values[here.number]
        return path == there and self._same(one, other, lane)

    def _same(self, first: Item, here: Item, lane: int) -> bool:
        match first, here:
            case Load(), Load():
                step = self._step(self.nest.form(first.address))
                alike = (first.value.ty, first.turn) == (here.value.ty, here.turn)
                return alike and step is not None and self._moved(first.address, here.address, lane)
            case LetLinear(), LetLinear():
                return self._moved(first.linear, here.linear, lane)
            case Let(), Let():
                return first.name == here.name and self._arguments(first, here, lane)
            case Call(), Call():
                return first.function == here.function and self._arguments(first, here, lane)
        return False

    def _arguments(self, first: Let | Call, here: Let | Call, lane: int) -> bool:
        if len(first.args) != len(here.args):
            return False
        known = dict(self.partners[lane])
        if self._all_equal(first.args, here.args, lane):
            return True
        self.partners[lane] = known
        free = isinstance(first, Let) and first.name in COMMUTATIVE and len(here.args) > 1
        return free and self._all_equal(first.args, (here.args[1], here.args[0], *here.args[2:]), lane)

    def _all_equal(self, some: Sequence[Operand], others: Sequence[Operand], lane: int) -> bool:
        return all(self._equal(a, b, lane) for a, b in zip(some, others, strict=True))

    def _moved(self, first: Linear, here: Linear, lane: int) -> bool:
        """Returns whether both are the same sum, ``lane`` steps apart."""
        one, other = self.nest.form(first), self.nest.form(here)
        step = self._step(one)
        if step is None or other.step != one.step or (other.const - one.const - lane * step) % (1 << 64):
            return False
        left = list(other.atoms)
        for atom, coefficient in one.atoms:
            known = dict(self.partners[lane])
            for at, (there, other_coefficient) in enumerate(left):
                if other_coefficient == coefficient and self._equal(atom, there, lane):
                    del left[at]
                    break
                self.partners[lane] = dict(known)
            else:
                return False
        return not left

    def are_all(self) -> bool:
        """Returns whether the lanes are all that the loop does, and each access goes to one structure in all of them."""
        found = {operand for partner in self.partners for operand in partner.values()}
        stores = {id(store) for chain in self.chains for store, _ in chain}
        for item, _ in self.nest.items:
            if isinstance(item, Store) and id(item) not in stores:
                return False
            if isinstance(item, Load | Call) and self.nest.constant(item.value) is None and item.value not in found:
                return False
            if isinstance(item, Assign) and item.variable not in found:
                return False
        return all(self.grain(group, self._step(self.nest.form(group[0].address)) or 0) for group in self._loads())

    def _loads(self) -> Iterator[tuple[Load, ...]]:
        """Of each load of the first lane that in all lanes."""
        for operand in self.partners[0]:
            item = self.nest.values[operand.number][0] if isinstance(operand, Val) else None
            if isinstance(item, Load):
                copies = (self.nest.values[there.number][0] for p in self.partners if isinstance(there := p[operand], Val))
                yield tuple(copy for copy in copies if isinstance(copy, Load))

    def are_apart(self, apart: Apart) -> bool:
        """Returns whether no lane stores what another one accesses."""
        groups: list[tuple[Access, ...]] = [tuple(store for store, _ in chain) for chain in self.chains]
        groups += self._loads()
        return all(
            store is other or self._apart(store, other, apart)
            for chain in self.chains
            for lane, (store, _) in enumerate(chain)
            for group in groups
            for beside, other in enumerate(group)
            if beside != lane
        )

    def _apart(self, first: Access, second: Access, apart: Apart) -> bool:
        """Returns whether the two never touch the same bytes in one iteration of the outer loop, however often the loops in
        it have run at either."""
        one, other = self.nest.form(first.address), self.nest.form(second.address)
        plain = not any(self.nest.inside(atom) for atom, _ in (*one.atoms, *other.atoms))
        if plain and one.parallel(other):
            distance, period = signed(other.const - one.const), gcd(*(c for a, c in one.atoms if self.nest.counts(a)))
            if period:
                behind = distance % period
                return behind >= access_bytes(first) and period - behind >= access_bytes(second)
            if distance >= access_bytes(first) or -distance >= access_bytes(second):
                return True
        return apart(first, second)

    def single(self, items: Sequence[Item], depth: int) -> Iterator[Item]:
        """The first lane's statements of those among ``items``, which are ``depth`` loops further in than the outer one."""
        claimed: set[int] = set()
        for item in items:
            match item:
                case LiftedLoop():
                    yield replace(item, body=tuple(self.single(item.body, depth + 1)))
                case Assign() if item.variable in self.partners[0]:
                    yield item
                case Load() if self.nest.constant(item.value) is not None:
                    rest: tuple[Executed | None, ...] = (None,) * (self.count - 1)
                    yield replace(item, lanes=((*key_of(item), item.part), *rest), outward=depth)
                case Let() if self.nest.constant(item.value) is not None:
                    yield item
                case LetLinear() if item.value in self.partners[0]:
                    yield replace(item, linear=self._scaled(item.linear))
                case Let() | Call() if item.value in self.partners[0]:
                    yield item
                case Load() if item.value in self.partners[0]:
                    group = next(loads for loads in self._loads() if loads[0] is item)
                    yield replace(item, address=self._scaled(item.address), lanes=_lanes(group, claimed), outward=depth)
                case Store():
                    chain = next((c for c in self.chains if c[0][0] is item), None)
                    if chain is not None:
                        lanes = _lanes([store for store, _ in chain], claimed)
                        yield replace(item, address=self._scaled(item.address), lanes=lanes, outward=depth)

    def _scaled(self, linear: Linear) -> Linear:
        return self.nest.form(linear).linear(self.nest.loop.counter, self.count)


def _lanes(group: Sequence[Access], claimed: set[int]) -> tuple[Executed | None, ...]:
    """The references that an access stands for in the lanes; one that several lanes share is that of the first."""
    found: list[Executed | None] = []
    for copy in group:
        found.append(None if copy.uid in claimed else (*key_of(copy), copy.part))
        claimed.add(copy.uid)
    return tuple(found)
