"""The values of a lifted function that are addresses, and the memories they point into (see ``state.py``)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from layout_advise.mockup.ir.effects import BITS, Gpr, Lane
from layout_advise.mockup.ir.lifted import (
    Assign,
    Imm,
    Item,
    Let,
    LetLinear,
    Lifted,
    LiftedLoop,
    Linear,
    Load,
    OpaqueCall,
    Operand,
    Store,
)  # fmt: skip
from tests.support.lifting.memories import Memories, Place

RSP = Gpr(4)
_COMPARES = ("eq", "ne", "slt", "sle", "ult", "ule")


class Pointers:
    """The values of a lifted function that are addresses, and the places that they name."""

    def __init__(self, lifted: Lifted) -> None:
        self.memories = Memories()
        self.lifted = lifted
        self.items = list(_all(lifted.body))
        self.made: dict[Operand, Item] = {}
        self.assigned: dict[Operand, list[Operand]] = {}
        self.entry: dict[Operand, Gpr | Lane] = {live.value: live.location for live in lifted.live_ins if live.half is None}
        self.place: dict[Operand, Place] = {}
        self.work: list[Operand] = []
        self.counts: set[Operand] = set()
        self.code: set[Operand] = set()
        self.choices: dict[Operand, set[int]] = {}
        for item in self.items:
            if isinstance(item, Let | LetLinear | Load):
                self.made[item.value] = item
            elif isinstance(item, Assign):
                self.assigned.setdefault(item.variable, []).append(item.operand)
        for operand, location in self.entry.items():
            if location == RSP:
                self.place[operand] = (self.memories.new(), 0)
                self.memories.frame = self.place[operand][0]
        self.reused = self._stored_again()
        self._addresses()

    def _stored_again(self) -> set[int]:
        """Offsets in the frame that are stored to more than once: what lies there differs from time to time."""
        stores = [self.in_frame(item.address) for item in self.items if isinstance(item, Store)]
        return {at for at, count in Counter(at for at in stores if at is not None).items() if count > 1}

    def in_frame(self, address: Linear) -> int | None:
        """The constant distance from the stack pointer at the entry; None of other addresses."""
        const, terms = self.flat(address)
        if len(terms) != 1:
            return None
        ((atom, coef),) = terms.items()
        const %= 2**64
        return const - (const >> 63 << 64) if coef == 1 and self.entry.get(atom) == RSP else None

    # ---- which values are pointers, and where to ------------------------------------------------------------------------

    def _addresses(self) -> None:
        for item in self.items:
            if isinstance(item, Load | Store):
                size = BITS[item.value.ty if isinstance(item, Load) else item.ty] // 8
                self.at(item.address, size)
            if isinstance(item, Let) and item.name not in ("select", "eq", "ne", "bitcast") and "returned" not in item.name:
                self.counts.update(item.args)
            if isinstance(item, Let) and item.name in _COMPARES:
                self._compared(item)
            if isinstance(item, OpaqueCall) and not isinstance(item.target, Imm):
                self.code.add(item.target)
        self.explain()

    def _compared(self, item: Let) -> None:
        """A value that is compared with a constant, directly or after a constant was added or bits were cut off."""
        one, other = item.args
        if isinstance(one, Imm):
            one, other = other, one
        if not isinstance(other, Imm) or isinstance(one, Imm) or one.ty not in ("i8", "i16", "i32", "i64"):
            return
        number, bits = other.value, BITS[one.ty]
        for _ in range(4):
            made = self.made.get(one)
            if isinstance(made, LetLinear) and len(made.linear.terms) == 1 and made.linear.terms[0][1] == 1:
                one, number = made.linear.terms[0][0], number - made.linear.const
            elif isinstance(made, Let) and made.name in ("trunc", "lo32", "zext", "sext"):
                one = made.args[0]
            elif isinstance(made, Let) and made.name in ("add", "sub") and isinstance(made.args[1], Imm):
                one, number = made.args[0], number - made.args[1].value * (1 if made.name == "add" else -1)
            else:
                break
            if isinstance(one, Imm):
                return
        number &= (1 << bits) - 1
        number -= (number >> (bits - 1)) << bits
        if abs(number) < 1 << 16:
            self.choices.setdefault(one, set()).add(number)

    def flat(self, linear: Linear, depth: int = 6) -> tuple[int, dict[Operand, int]]:
        """The sum with the sums written out that it is made of."""
        const, found = linear.const, dict[Operand, int]()
        for atom, coef in linear.terms:
            inner = self.made.get(atom)
            if isinstance(inner, LetLinear) and depth > 0 and atom not in self.place:
                more, terms = self.flat(inner.linear, depth - 1)
                const += more * coef
                for other, factor in terms.items():
                    found[other] = found.get(other, 0) + factor * coef
            else:
                found[atom] = found.get(atom, 0) + coef
        return const, found

    def score(self, operand: Operand, seen: frozenset[Operand] = frozenset()) -> int:
        """The weight of evidence for a pointer; 0: it is none."""
        if operand in self.place:
            return 6
        if operand.ty != "i64" or isinstance(operand, Imm) or operand in seen:
            return 0
        if operand in self.entry:
            return 4 - 2 * (operand in self.counts)
        item = self.made.get(operand)
        if isinstance(item, Load):
            return 4 - 2 * (operand in self.counts)
        if isinstance(item, Let):
            if item.name == "select":
                return self._best(item.args[1:], operand, seen)
            return 3 if item.name == "returned.rax" else 0
        return self._best(self.assigned.get(operand, ()), operand, seen)

    def _best(self, operands: Sequence[Operand], inside: Operand, seen: frozenset[Operand]) -> int:
        seen |= {inside}
        if len(seen) > 6:
            return 0
        scores = [
            self.score(atom, seen)
            for operand in operands
            if not isinstance(operand, Imm)
            for atom, coef in self.flat(Linear(0, ((operand, 1),)))[1].items()
            if coef == 1
        ]
        return max(0, max(scores, default=0) - 1)

    def split(self, linear: Linear) -> tuple[Operand | None, int, list[int]]:
        """(pointer, constant offset, steps of the rest) of an address."""
        const, terms = self.flat(linear)
        ranked = sorted(((self.score(a), -k, a) for k, (a, c) in enumerate(terms.items()) if c == 1), key=lambda t: t[:2])
        base = ranked[-1][2] if ranked and ranked[-1][0] > 0 else None
        const %= 2**64
        const = const - 2**64 if const >> 63 else const
        return base, const, [abs(c) for a, c in terms.items() if a != base]

    def at(self, linear: Linear, size: int) -> Place | None:
        """The place that an address of so many bytes names; None where no pointer is seen in it."""
        base, const, steps = self.split(linear)
        if base is None:
            return None
        memory, offset = self.pointer(base)
        for step in steps:
            self.memories.repeat((memory, 0), step if step >= size else size)
        if steps and self.memories.find((memory, 0))[0] == self.memories.frame:
            return None
        return memory, offset + const

    def pointer(self, operand: Operand) -> Place:
        """The place that a value points to."""
        if operand not in self.place:
            self.place[operand] = (self.memories.new(), 0)
            self.work.append(operand)
        return self.place[operand]

    def explain(self) -> None:
        """Follow the values that were found to be pointers to where they come from."""
        while self.work:
            operand = self.work.pop()
            item = self.made.get(operand)
            sources: Sequence[Operand] = self.assigned.get(operand, ())
            if isinstance(item, Let) and item.name == "select":
                sources = item.args[1:]
            for source in sources:
                if not isinstance(source, Imm):
                    self._comes_from(operand, Linear(0, ((source, 1),)))
            if isinstance(item, LetLinear):
                self._comes_from(operand, item.linear)

    def _comes_from(self, operand: Operand, linear: Linear) -> None:
        place = self.at(linear, 8)
        if place is not None:
            self.memories.same(self.place[operand], place)


def _all(items: Sequence[Item]) -> Iterator[Item]:
    for item in items:
        yield item
        if isinstance(item, LiftedLoop):
            yield from _all(item.body)
