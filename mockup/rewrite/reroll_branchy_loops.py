"""Loops with branches of which a compiler does several iterations in one, written as one iteration again.

clang unrolls short loops, those with branches on data too. The copies then follow one after the other, each with its own
branches; what they do, and in which order, is what so many iterations of one copy would do. Of the unrolled form no compiler
makes vectors in another layout, and blocks of elements cut an index at each access: a structure of arrays gained 1.06 times
for a loop over ants where by hand it gains 5.

Copies are equal but for their addresses, which lie as far apart as the copy in a loop over single elements would move, and
for the values and labels that they define. What one hands to the next, the last one hands to the first of the next
iteration. Nothing else goes from copy to copy, no way leads out of the loop, and nothing that is defined in it is used
behind it but what it hands on.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from dataclasses import replace

from layout_advise.mockup.evidence.binding import Access, key_of
from layout_advise.mockup.ir.lifted import (
    Assign,
    Call,
    Goto,
    Item,
    Label,
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
from layout_advise.mockup.ir.loop_body import defined, operands
from layout_advise.mockup.rewrite.unrolled_copies import COMMUTATIVE, MOST_COPIES

Grain = Callable[[Sequence[Access], int], bool]
"""Whether the copies of an access may move by so many bytes from one to the next."""
_MOVED = Load | Store | LetLinear


def reroll_copies(loop: LiftedLoop, grain: Grain, behind: Container[Operand]) -> tuple[LiftedLoop, int] | None:
    """The loop with one of its copies for a body, and how many it has; its trip count is still the old one. None where the
    body is not several copies of anything, or has no branch (:mod:`layout_advise.mockup.rewrite.unrolled_copies` looks at
    these). ``behind`` is what is read outside the loop."""
    copied = (Let, LetLinear, Load, Store, Call, Assign, Goto, Label)
    if loop.trip is None or not all(isinstance(item, copied) for item in loop.body):
        return None
    if not any(isinstance(item, Goto) for item in loop.body) or any(map(_is_packed, loop.body)):
        return None
    end = len(loop.body)
    while isinstance(loop.body[end - 1], Assign):
        end -= 1
    core, tail = loop.body[:end], [item for item in loop.body[end:] if isinstance(item, Assign)]
    own = {item.number for item in core if isinstance(item, Label)}
    if any(isinstance(item, Goto) and item.label not in own for item in core):
        return None
    if any(o in behind for o in defined(core)):
        return None
    for count in range(min(MOST_COPIES, end), 1, -1):
        if end % count == 0 and (found := _Copies(loop, core, tail, count, grain).body()) is not None:
            return replace(loop, body=found), count
    return None


def _is_packed(item: Item) -> bool:
    packed = isinstance(item, Let | Load | Store) and item.origin.pack is not None
    return packed or (isinstance(item, Load | Store) and bool(item.lanes))


class _Copies:
    """Tries one number of copies."""

    def __init__(self, loop: LiftedLoop, core: Sequence[Item], tail: Sequence[Assign], count: int, grain: Grain) -> None:
        size = len(core) // count
        self.counter = loop.counter
        self.copies = [core[k * size : (k + 1) * size] for k in range(count)]
        self.tail = tail
        self.grain = grain
        self.carried = {item.variable for item in tail}
        self.defined = set(defined(self.copies[0]))
        self.inside = set(defined(core))
        self.partners: list[dict[Operand, Operand]] = [{o: o for o in self.defined}]
        self.read: list[tuple[int, Var, Operand]] = []
        """In which copy something else stands for which variable that is handed on."""

    def body(self) -> tuple[Item, ...] | None:
        """The first copy as the body of a loop over single elements."""
        if any(o in self.inside for o in self.carried) or not self._assigned_first():
            return None
        for k in range(1, len(self.copies)):
            self.partners.append({})
            self.labels: dict[int, int] = {}
            self.groups: dict[int, int] = {}
            if not all(self._same(first, here, k) for first, here in zip(self.copies[0], self.copies[k], strict=True)):
                return None
            if any(len(set(found.values())) != len(found) for found in (self.partners[k], self.labels, self.groups)):
                return None
        ends = self._ends()
        if ends is None:
            return None
        body = [rolled for n, item in enumerate(self.copies[0]) if (rolled := self._rerolled(n, item)) is not None]
        return (*body, *ends) if len(body) == len(self.copies[0]) else None

    def _ends(self) -> list[Assign] | None:
        """Returns what the first copy hands on as the last one did; None where the copies do not hand it from one to the
        next."""
        back = {there: first for first, there in self.partners[-1].items()}
        given = {item.variable: back.get(item.operand) for item in self.tail}
        for k, variable, there in self.read:
            first = given[variable]
            if first is None or self.partners[k - 1].get(first) != there:
                return None
        ends = []
        for item in self.tail:
            operand = given[item.variable]
            if operand is not None:
                ends.append(replace(item, operand=operand))
            elif item.operand in self.inside or item.operand in self.carried or item.operand == self.counter:
                return None
            else:
                ends.append(item)
        return ends

    def _assigned_first(self) -> bool:
        """Returns whether the first copy has assigned each of its variables, whichever way it takes, before it reads it,
        and at its end (what an iteration of the copies left in one would be another copy's), and jumps nowhere else."""
        every: set[Operand] = {o for o in self.defined if isinstance(o, Var)}
        own = {item.number for item in self.copies[0] if isinstance(item, Label)}
        now: set[Operand] = set()
        arriving: dict[int, set[Operand]] = {}
        for item in self.copies[0]:
            if isinstance(item, Label):
                now = now & arriving.pop(item.number, every)
                continue
            if any(o in every and o not in now for o in operands(item)):
                return False
            if isinstance(item, Assign):
                now = {*now, item.variable}
            elif isinstance(item, Goto) and item.label not in own:
                return False
            elif isinstance(item, Goto):
                arriving[item.label] = arriving.get(item.label, every) & now
                now = every if item.condition is None else now
        return now == every

    def _same(self, first: Item, here: Item, k: int) -> bool:
        """Returns whether both do the same in their copies; what they define are partners from here on."""
        match first, here:
            case Load(), Load():
                alike = (first.value.ty, first.guarded, first.turn) == (here.value.ty, here.guarded, here.turn)
                return alike and self._moved(first.address, here.address, k) and self._partners(first.value, here.value)
            case Store(), Store():
                alike = (first.ty, first.turn) == (here.ty, here.turn)
                return alike and self._moved(first.address, here.address, k) and self._equal(first.stored, here.stored, k)
            case LetLinear(), LetLinear():
                return self._moved(first.linear, here.linear, k) and self._partners(first.value, here.value)
            case Let(), Let():
                return (
                    first.name == here.name and self._arguments(first, here, k) and self._partners(first.value, here.value)
                )
            case Call(), Call():
                same = first.function == here.function and self._arguments(first, here, k)
                return same and self._partners(first.value, here.value)
            case Assign(), Assign():
                same = self.groups.setdefault(first.group, here.group) == here.group
                return same and self._equal(first.operand, here.operand, k) and self._partners(first.variable, here.variable)
            case Goto(), Goto():
                one, other = first.condition, here.condition
                same = one is other if one is None or other is None else self._equal(one, other, k)
                return same and self.labels.setdefault(first.label, here.label) == here.label
            case Label(), Label():
                return self.labels.setdefault(first.number, here.number) == here.number
        return False

    def _partners(self, first: Val | Var, here: Val | Var) -> bool:
        return first.ty == here.ty and self.partners[-1].setdefault(first, here) == here

    def _equal(self, first: Operand, here: Operand, k: int) -> bool:
        """Returns whether an operand of copy ``k`` is what ``first`` is in the first one."""
        partner = self.partners[k]
        if first in partner:
            return partner[first] == here
        if isinstance(first, Var) and first in self.carried:
            self.read.append((k, first, here))
            return True
        return first == here and first != self.counter and first not in self.inside

    def _arguments(self, first: Let | Call, here: Let | Call, k: int) -> bool:
        if len(first.args) != len(here.args):
            return False
        if self._all_equal(first.args, here.args, k):
            return True
        swapped = (here.args[1], here.args[0], *here.args[2:]) if len(here.args) > 1 else here.args
        return isinstance(first, Let) and first.name in COMMUTATIVE and self._all_equal(first.args, swapped, k)

    def _all_equal(self, some: Sequence[Operand], others: Sequence[Operand], k: int) -> bool:
        known = len(self.read)
        if all(self._equal(a, b, k) for a, b in zip(some, others, strict=True)):
            return True
        del self.read[known:]
        return False

    def _moved(self, first: Linear, here: Linear, k: int) -> bool:
        """Returns whether both are the same sum, ``k`` copies apart."""
        one, other = form_of(first, self.counter), form_of(here, self.counter)
        step = self._step(one)
        if step is None or other.step != one.step or (other.const - one.const - k * step) % (1 << 64):
            return False
        if len(one.atoms) != len(other.atoms):
            return False
        left = list(other.atoms)
        for atom, coef in one.atoms:
            at = next((n for n, (a, c) in enumerate(left) if c == coef and self._all_equal((atom,), (a,), k)), None)
            if at is None:
                return False
            del left[at]
        return True

    def _step(self, form: Form) -> int | None:
        return form.step // len(self.copies) if form.step % len(self.copies) == 0 else None

    def _rerolled(self, n: int, item: Item) -> Item | None:
        """Statement ``n`` of the first copy, as it is in a loop over single elements."""
        if not isinstance(item, _MOVED):
            return item
        if isinstance(item, LetLinear):
            return replace(item, linear=self._scaled(item.linear))
        every = [here for copy in self.copies if isinstance(here := copy[n], Load | Store)]
        step = self._step(form_of(item.address, self.counter))
        if step is None or not self.grain(every, step):
            return None
        lanes = tuple((*key_of(access), access.part) for access in every)
        return replace(item, address=self._scaled(item.address), lanes=lanes)

    def _scaled(self, linear: Linear) -> Linear:
        return form_of(linear, self.counter).linear(self.counter, len(self.copies))
