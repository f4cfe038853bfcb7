"""Ways that no call took, and that come back to their loop, end a mock-up behind the loop instead of in it.

``y[i] = x >= 0 ? x : 0`` may be a jump in machine code, to a copy of the loop's end. Where no call took it the mock-up
stops there, and of a loop that may stop in any iteration compilers make no vectors, as they do of the source: the matrices
of ``fasttree`` gained 1.25 times by columns, and 3.2 where they were changed by hand. So the loop collects whether it would
have gone there, goes on, and is asked when it is done.

Only where going on reaches no memory that the calls do not reach, and where what the way itself does is no more than a
choice between two values (:mod:`layout_advise.mockup.lift.loops.ways_back`): a source whose way does more has no vectors.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from layout_advise.mockup.evidence.evidence import Evidence
from layout_advise.mockup.ir.effects import BITS, Ty
from layout_advise.mockup.ir.lifted import (
    Assign,
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
    Origin,
    Store,
    Val,
    Var,
    WayEnd,
    everything,
)
from layout_advise.mockup.ir.loop_body import first_free_number, operands

_DIVIDES = frozenset(("udiv", "urem", "sdiv", "srem"))
"""Operations that end the process where what they get is not what the original gives them."""


def stop_behind_loops(lifted: Lifted, evidence: Evidence) -> Lifted:
    """Returns ``lifted`` with innermost loops that stop when they are done, where they would have in an iteration.

    Needs: ways that come back to their loop; of the evidence nothing.
    Gives: loops with a trip count that nothing leaves early.
    Keeps: all that is computed and stored where no way is taken that no compared call took.
    """
    ends = _ends(lifted.body)
    if not any(end.rejoins for end in ends.values()):
        return lifted
    groups = max((item.group for item in everything(lifted.body) if isinstance(item, Assign)), default=0)
    made = _Loops(ends, first_free_number(lifted), groups + 1)
    return replace(lifted, body=tuple(made.items(lifted.body)))


def _ends(items: Sequence[Item]) -> dict[int, WayEnd]:
    """The labels behind which nothing but the end of a way follows."""
    found: dict[int, WayEnd] = {}
    labels: list[int] = []
    for item in items:
        if isinstance(item, Label):
            labels.append(item.number)
            continue
        if isinstance(item, WayEnd):
            found |= dict.fromkeys(labels, item)
        elif isinstance(item, LiftedLoop):
            found |= _ends(item.body)
        labels = []
    return found


@dataclass(slots=True)
class _Loops:
    """The pass over one hotspot; ``number`` and ``group`` are the next free ones."""

    ends: Mapping[int, WayEnd]
    number: int
    group: int

    def items(self, items: Sequence[Item]) -> Iterator[Item]:
        """The statements, loops included."""
        for item in items:
            if not isinstance(item, LiftedLoop):
                yield item
            elif leaving := self._leaving(item):
                yield from self._asked_behind(item, leaving)
            else:
                yield replace(item, body=tuple(self.items(item.body)))

    def _leaving(self, loop: LiftedLoop) -> tuple[Goto, ...]:
        """The jumps out of a loop, where all of them are ways that come back to it, and it may go on instead."""
        plain = Let | LetLinear | Load | Store | Assign | Goto | Label
        if loop.trip is None or not all(isinstance(item, plain) for item in loop.body):
            return ()
        own = {item.number for item in loop.body if isinstance(item, Label)}
        found = tuple(item for item in loop.body if isinstance(item, Goto) and item.label not in own)
        for item in found:
            end = self.ends.get(item.label)
            if end is None or loop.head not in end.rejoins or item.condition is None:
                return ()
        return found if _reaches_the_same(loop.body) else ()

    def _asked_behind(self, loop: LiftedLoop, leaving: Sequence[Goto]) -> Iterator[Item]:
        """A loop that collects the conditions of ``leaving``, each in a variable, and the jumps behind it."""
        origin, straight = Origin(loop.head), not any(isinstance(item, Label) for item in loop.body)
        body, moves, behind = list[Item](), list[Item](), list[Item]()
        for item in loop.body:
            if not isinstance(item, Goto) or item not in leaving or item.condition is None:
                body.append(item)
                continue
            ty = _compared(item.condition, loop.body)
            variable, now, hit = Var(self._number(), ty), Val(self._number(), ty), Val(self._number(), "i1")
            yield Assign(variable, Imm(ty, 0), self._group())
            # chosen and not added up with "or": of that gcc makes no vectors
            body.append(Let(now, "select", (item.condition, Imm(ty, 1), variable), origin))
            (moves if straight else body).append(Assign(variable, now, self._group()))
            behind += [Let(hit, "ne", (variable, Imm(ty, 0)), origin), Goto(item.label, hit)]
        yield replace(loop, body=(*body, *moves))
        yield from behind

    def _number(self) -> int:
        self.number += 1
        return self.number - 1

    def _group(self) -> int:
        self.group += 1
        return self.group - 1


def _reaches_the_same(body: Sequence[Item]) -> bool:
    """Returns whether an iteration can be gone through whatever is loaded: no address hangs on it, and nothing is
    divided."""
    loaded: set[Operand] = {item.variable for item in body if isinstance(item, Assign)}
    for item in body:
        if isinstance(item, Let) and item.name in _DIVIDES:
            return False
        if isinstance(item, Load) or (isinstance(item, Let | LetLinear) and loaded.intersection(operands(item))):
            loaded.add(item.value)
    accesses = (item for item in body if isinstance(item, Load | Store))
    return not any(atom in loaded for access in accesses for atom, _ in access.address.terms)


def _compared(condition: Operand, body: Sequence[Item]) -> Ty:
    """The integer as wide as what a condition compares: vectors of conditions are as wide as what they are of."""
    made: dict[Operand, Let] = {item.value: item for item in body if isinstance(item, Let)}
    at = condition
    while at.ty == "i1" and (let := made.get(at)) is not None and let.args:
        (at, *_) = let.args
    return "i64" if BITS[at.ty] > 32 else "i32"
