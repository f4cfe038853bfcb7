"""Recognises a loop body that is several copies ("lanes") of one computation on consecutive elements.

A compiler that vectorises or unrolls a loop over elements leaves a loop whose trip does B elements. Lifted, each element
has its own expressions, equal but for their addresses: where a reference of one element moves by C bytes a trip, the copies
of it lie C / B apart. Everything else must be the same: operations, constants (loads of equal read-only bytes are the same
constant), values from outside the loop. A variable carried from iteration to iteration must pass through the lanes in their
order: a sum in the order of the elements does, one with an accumulator a lane does not. Nothing here decides whether the
copies may be run one after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

from layout_advise.mockup.evidence.binding import Access
from layout_advise.mockup.ir.lifted import Call, Item, Let, LetLinear, Load, Operand, Store, Val, Var
from layout_advise.mockup.ir.linear_forms import Form
from layout_advise.mockup.ir.loop_body import Body, arguments

COMMUTATIVE = dict.fromkeys(("add", "mul", "and", "or", "xor", "eq", "ne", "umulhi", "smulhi", "fadd", "fmul", "fma"), 2)
"""Operations to how many of their first operands may change places. Of floating-point ones the order decides only whose
bits a NaN made of two has; compilers of sources do not keep it, not even from one lane to the next."""
MOST_COPIES = 64


@dataclass(frozen=True, slots=True)
class UnrolledCopies:
    """``stores[k]`` are the positions in the body of lane k's stores, in the order of lane 0's; ``partners[k]`` maps the
    number of every value of lane 0 to that of the same value in lane k."""

    count: int
    stores: tuple[tuple[int, ...], ...]
    partners: tuple[dict[int, int], ...]


def find_copies(body: Body, grain: Callable[[Access, int], bool]) -> UnrolledCopies | None:
    """The most lanes that the body consists of; None where it is not several copies of anything.

    ``grain(access, step)`` tells whether the access may move by ``step`` bytes from one copy to the next.
    """
    stores = [k for k, item in enumerate(body.items) if isinstance(item, Store)]
    if body.carried is None:
        return None
    lengths = [n for n in (len(stores), *map(len, body.carried.values())) if n]
    for count in range(min(*lengths, MOST_COPIES) if lengths else 0, 1, -1):
        if any(length % count for length in lengths):
            continue
        found = _Matcher(body, count, grain).match(stores)
        if found is not None:
            return found
    return None


def _name_of(item: Let | LetLinear | Call) -> str:
    if isinstance(item, LetLinear):
        return "sum"
    return item.name if isinstance(item, Let) else f"call {item.function}"


class _Matcher:
    """Tries one number of lanes."""

    def __init__(self, body: Body, count: int, grain: Callable[[Access, int], bool]) -> None:
        self.body = body
        self.count = count
        self.grain = grain
        self.shapes: dict[Hashable, int] = {}
        self.shape: dict[int, int] = {}
        # what each lane hands on
        self.carried: dict[Var, tuple[int, ...]] = {
            variable: way[len(way) // count - 1 :: len(way) // count] for variable, way in (body.carried or {}).items()
        }

    def match(self, stores: Sequence[int]) -> UnrolledCopies | None:
        """The lanes, found from where the stores go."""
        chains = self._chains(stores)
        if chains is None:
            return None
        for number, item in self.body.defined.items():
            variable = next((v for v, values in self.carried.items() if number in values), None)
            shape = self._shape(item) if variable is None else ("outside", variable)
            self.shape[number] = self.shapes.setdefault(shape, len(self.shapes))
        partners: list[dict[int, int]] = []
        for lane in range(self.count):
            found = self._pair(chains, lane)
            if found is None:
                return None
            partners.append(found)
        by_lane = tuple(tuple(chain[lane] for chain in chains) for lane in range(self.count))
        return UnrolledCopies(self.count, by_lane, tuple(partners))

    def _chains(self, stores: Sequence[int]) -> list[list[int]] | None:
        """The stores, those of one kind in the order of their lanes."""
        groups: dict[Hashable, dict[int, int]] = {}
        for k in stores:
            item = self.body.items[k]
            assert isinstance(item, Store)
            form = self.body.addresses[item.uid]
            step = self._step(form)
            if not step or not self.grain(item, step) or any(self.body.inside(a) for a, _ in form.atoms):
                return None
            kind = (item.ty, step, frozenset((self.body.key(a), c) for a, c in form.atoms))
            at = groups.setdefault(kind, {})
            if form.number() in at:
                return None
            at[form.number()] = k
        chains: list[list[int]] = []
        for (_, step, _), at in ((kind, at) for kind, at in groups.items() if isinstance(kind, tuple)):
            while at:
                first = min(at, key=lambda const: const if step > 0 else -const)
                wanted = [first + lane * step for lane in range(self.count)]
                if any(const not in at for const in wanted):
                    return None
                chains.append([at.pop(const) for const in wanted])
        chains.sort(key=lambda chain: chain[0])
        return chains

    def _step(self, form: Form) -> int | None:
        """How far the form moves from one lane to the next; None where that is no whole number."""
        return form.step // self.count if form.step % self.count == 0 else None

    def _shape(self, item: Item) -> Hashable:
        """Equal for corresponding values of all lanes (but not only for these)."""
        if isinstance(item, Load):
            if item.value.number in self.body.names:
                return self.body.names[item.value.number]
            return ("load", item.value.ty, self._form_shape(self.body.addresses[item.uid]))
        if isinstance(item, LetLinear):
            return ("sum", self._form_shape(self.body.forms[item.value.number]))
        assert isinstance(item, Let | Call)
        form = self.body.form(item.value)
        if form is not None:
            return ("sum", self._form_shape(form))
        name = _name_of(item)
        args = [self._operand_shape(a) for a in item.args]
        free = COMMUTATIVE.get(name, 0)
        return (name, item.value.ty, *sorted(args[:free]), *args[free:])

    def _form_shape(self, form: Form) -> Hashable:
        step = self._step(form)
        const = form.number() % abs(step) if step else form.const
        return (form.bits, form.step, const, tuple(sorted((self._operand_shape(a), c) for a, c in form.atoms)))

    def _operand_shape(self, operand: Operand) -> int:
        if self.body.inside(operand):
            assert isinstance(operand, Val)
            return self.shape[operand.number]
        return self.shapes.setdefault(("outside", self.body.key(operand)), len(self.shapes))

    def _pair(self, chains: Sequence[Sequence[int]], lane: int) -> dict[int, int] | None:
        """Returns which value of ``lane`` is which of lane 0, from the stores down to the leaves."""
        partner: dict[int, int] = {}
        work: list[tuple[Operand, Operand]] = []
        for chain in chains:
            first, here = self.body.items[chain[0]], self.body.items[chain[lane]]
            assert isinstance(first, Store)
            assert isinstance(here, Store)
            work.append((first.stored, here.stored))
        for variable, values in self.carried.items():
            work.append((Val(values[0], variable.ty), Val(values[lane], variable.ty)))
        while work:
            first_operand, here_operand = work.pop()
            more = self._same(first_operand, here_operand, lane, partner)
            if more is None:
                return None
            work += more
        return partner

    def _same(
        self, first: Operand, here: Operand, lane: int, partner: dict[int, int]
    ) -> Sequence[tuple[Operand, Operand]] | None:
        """Returns what remains to be compared for the two to be the same value in two lanes; None where they are not."""
        if isinstance(first, Var) and first in self.carried:
            expected = Val(self.carried[first][lane - 1], first.ty) if lane else first
            return () if here == expected else None
        if not self.body.inside(first) or not self.body.inside(here):
            counter = self.body.loop.counter
            same = first.ty == here.ty and self.body.key(first) == self.body.key(here)
            return () if same and (first != counter or lane == 0) else None
        assert isinstance(first, Val)
        assert isinstance(here, Val)
        if first.number in partner:
            return () if partner[first.number] == here.number else None
        partner[first.number] = here.number
        if self.shape[first.number] != self.shape[here.number]:
            return None
        return self._inputs(self.body.defined[first.number], self.body.defined[here.number], lane)

    def _inputs(self, first: Item, here: Item, lane: int) -> Sequence[tuple[Operand, Operand]] | None:
        if isinstance(first, Load) and isinstance(here, Load):
            form = self.body.addresses[first.uid]
            step = self._step(form)
            if step is None or not self.grain(first, step):
                return None
            return self._atoms(form, self.body.addresses[here.uid], lane)
        assert isinstance(first, Let | LetLinear | Call)
        assert isinstance(here, Let | LetLinear | Call)
        one, other = (self.body.forms.get(i.value.number) for i in (first, here))
        if one is not None and other is not None:
            return self._atoms(one, other, lane)
        if _name_of(first) != _name_of(here) or first.value.ty != here.value.ty:
            return None
        args, those = list(arguments(first)), list(arguments(here))
        if isinstance(first, Let) and first.name in COMMUTATIVE:
            free = COMMUTATIVE[first.name]
            args[:free] = sorted(args[:free], key=self._operand_shape)
            those[:free] = sorted(those[:free], key=self._operand_shape)
        return list(zip(args, those, strict=True)) if len(args) == len(those) else None

    def _atoms(self, one: Form, other: Form, lane: int) -> Sequence[tuple[Operand, Operand]] | None:
        """Equal shapes are given; the constants must differ by just the lane's distance."""
        step = self._step(one)
        if step is None or other.step != one.step or (other.const - one.const - lane * step) % (1 << one.bits):
            return None
        pairs = [sorted(f.atoms, key=lambda t: (t[1], self._operand_shape(t[0]))) for f in (one, other)]
        if [c for _, c in pairs[0]] != [c for _, c in pairs[1]]:
            return None
        return [(a, b) for (a, _), (b, _) in zip(*pairs, strict=True)]
