"""The differences between neighbouring iterations of a loop that are run side by side, one lane each.

A value is *uniform* where all iterations have the same, *varying* where not; a varying integer is a *run* where it grows by
a constant from iteration to iteration. Jumps on a varying condition, and all up to where their lanes meet again, are made
under masks. What cannot be run so is refused with the reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from layout_advise.errors import NotVectorisedError
from layout_advise.mockup.evidence.binding import accesses
from layout_advise.mockup.ir.effects import BITS
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
    Linear,
    Load,
    OpaqueCall,
    Operand,
    RuntimeCall,
    Store,
    Val,
    Var,
    WayEnd,
    everything,
)
from layout_advise.mockup.ir.linear_forms import signed
from layout_advise.mockup.ir.loop_body import operands

MOST_STATEMENTS = 800
_RUNNING = ("add", "sub", "mul", "shl", "neg")


@dataclass(slots=True)
class SimdIterations:
    """Of one loop: ``values`` and ``variables`` that vary, by number; ``runs``: how much a value grows an iteration;
    ``masked`` are the numbers of jumps made by some lanes only; ``left`` are values and variables read after the loop,
    ``last`` variables that nothing is computed from in it: they hold what the last lane left."""

    values: set[int] = field(default_factory=set)
    variables: set[int] = field(default_factory=set)
    runs: dict[int, int] = field(default_factory=dict)
    masked: set[int] = field(default_factory=set)
    types: dict[int, Val] = field(default_factory=dict)
    left: tuple[Val | Var, ...] = ()
    last: frozenset[int] = frozenset()

    def varies(self, operand: Operand) -> bool:
        """Returns whether the iterations differ in ``operand``."""
        if isinstance(operand, Val):
            return operand.number in self.values
        return isinstance(operand, Var) and operand.number in self.variables

    def run(self, linear: Linear) -> int | None:
        """By how much ``linear`` grows an iteration; None where that is not constant."""
        step = 0
        for atom, coef in linear.terms:
            if self.varies(atom):
                if not isinstance(atom, Val) or atom.number not in self.runs:
                    return None
                step += coef * self.runs[atom.number]
        return signed(step, 64)

    def size(self, body: Sequence[Item]) -> int:
        """Bytes of the values that the lanes are chosen for: the greatest of the varying floats, else what is accessed."""
        floats = [BITS[v.ty] // 8 for v in self.types.values() if v.ty in ("f32", "f64")]
        others = [BITS[a.value.ty if isinstance(a, Load) else a.ty] // 8 for a in accesses(body)]
        return max(floats or others, default=8)


def analyse_iterations(loop: LiftedLoop, lifted: Lifted) -> SimdIterations:
    """How the iterations of ``loop``, whose accesses are independent, run side by side.

    Raises NotVectorisedError where they cannot.
    """
    where = f"the loop at {loop.head:#x} is not written for SIMD"
    inside = list(everything(loop.body))
    if any(isinstance(item, Let) and "f80" in (item.value.ty, *(a.ty for a in item.args)) for item in inside):
        raise NotVectorisedError(where, "it computes with numbers of 80 bits (x87)")
    if len(inside) > MOST_STATEMENTS:
        raise NotVectorisedError(where, f"it has {len(inside)} statements")
    ours = {item.uid for item in inside}
    others = [item for item in everything(lifted.body) if item.uid not in ours]
    outside = {item.variable.number for item in others if isinstance(item, Assign)}
    changed = {item.variable for item in inside if isinstance(item, Assign)}
    last = _handed_on(inside, {v for v in changed if v.number in outside}, where)
    if loop.trip is None:
        raise NotVectorisedError(where, "how often it runs is not known before")
    found = _Analysis(loop, where, last).run()
    used = {o for item in others for o in operands(item)} | {out.operand for out in lifted.live_outs}
    defined: set[Val | Var] = {*found.types.values(), *changed}
    found.left = tuple(sorted((o for o in defined & used if found.varies(o)), key=lambda o: o.number))
    return found


def _handed_on(inside: Sequence[Item], carried: set[Var], where: str) -> frozenset[int]:
    """The variables that carry something from iteration to iteration, and those that it is copied to.

    Nothing may be computed from them, and each must end with what it was or with a new value, not with another one's: then
    what the last iteration leaves is what all of them leave. (A register that may hold a result is such a variable.)
    """
    moves = [item for item in inside if isinstance(item, Assign)]
    computed = {o for item in inside if not isinstance(item, Assign) for o in operands(item)}
    handed: set[Operand] = set()
    for variable in carried & {o for item in inside for o in operands(item)}:
        group: set[Operand] = {variable}
        while more := {m.variable for m in moves if m.operand in group} - group:
            group |= more
        if group & (computed | handed):
            raise NotVectorisedError(where, "an iteration needs what the one before computed")
        handed |= group
    return frozenset(o.number for o in handed if isinstance(o, Var))


class _Analysis:
    """Repeated until nothing more varies."""

    def __init__(self, loop: LiftedLoop, where: str, last: frozenset[int]) -> None:
        self.loop, self.where = loop, where
        self.found = SimdIterations({loop.counter.number}, set(), {loop.counter.number: 1}, last=last)

    def run(self) -> SimdIterations:
        before = (-1, -1, -1)
        while (now := (len(self.found.values), len(self.found.variables), len(self.found.masked))) != before:
            before = now
            self._body(self.loop.body, frozenset(), masked=False)
        return self.found

    def _refuse(self, why: str) -> None:
        raise NotVectorisedError(self.where, why)

    def _body(self, items: Sequence[Item], around: frozenset[int], *, masked: bool) -> None:
        labels = {item.number for item in items if isinstance(item, Label)}
        waiting: set[int] = set()
        for item in items:
            under = masked or bool(waiting)
            if isinstance(item, Label):
                waiting.discard(item.number)
            elif isinstance(item, Goto):
                if under or (item.condition is not None and self.found.varies(item.condition)):
                    if item.label not in labels:
                        self._refuse("its iterations leave a loop at different times")
                    self.found.masked.add(item.uid)
                    waiting.add(item.label)
                elif item.label not in labels | around:
                    self._refuse("it may be left early")
            elif isinstance(item, LiftedLoop):
                if item.trip is None:
                    raise NotVectorisedError(self.where, "how often a loop in it runs is not known before")
                if self.found.varies(item.trip):
                    self._refuse("how often a loop in it runs differs from iteration to iteration")
                self._body(item.body, around | labels, masked=under)
            else:
                self._item(item, under)

    def _item(self, item: Item, under: bool) -> None:
        if isinstance(item, OpaqueCall):
            self._refuse("it calls code that is not lifted")
        elif isinstance(item, WayEnd):
            self._refuse("it may be left early")
        elif isinstance(item, Atomic | RuntimeCall):
            self._refuse("its threads synchronise")
        elif isinstance(item, Assign) and item.variable.number in self.found.last:
            if under:
                self._refuse("an iteration may need what the one before computed")
        elif isinstance(item, Assign):
            if under or self.found.varies(item.operand):
                self.found.variables.add(item.variable.number)
        elif isinstance(item, Store):
            if not any(self.found.varies(atom) for atom, _ in item.address.terms):
                self._refuse("all its iterations store to the same place")
        elif isinstance(item, Let | LetLinear | Load | Call) and any(self.found.varies(o) for o in operands(item)):
            self.found.values.add(item.value.number)
            self.found.types[item.value.number] = item.value
            step = self._step(item)
            if step is None:
                self.found.runs.pop(item.value.number, None)
            else:
                self.found.runs[item.value.number] = step

    def _step(self, item: Item) -> int | None:
        if isinstance(item, LetLinear):
            return self.found.run(item.linear)
        if not isinstance(item, Let) or item.value.ty != "i32":
            return None
        steps = [self._run_of(a) for a in item.args]
        if item.name == "lo32":
            return None if steps[0] is None else signed(steps[0], 32)
        if item.name not in _RUNNING or any(s is None for s in steps):
            return None
        first, second = steps[0] or 0, (steps[1] if len(steps) > 1 else 0) or 0
        if item.name in ("add", "sub"):
            return signed(first + second if item.name == "add" else first - second, 32)
        if item.name == "neg":
            return signed(-first, 32)
        factor = item.args[1]
        if not isinstance(factor, Imm) or (item.name == "shl" and factor.value > 31):
            return None
        return signed(first * (factor.value if item.name == "mul" else 1 << factor.value), 32)

    def _run_of(self, operand: Operand) -> int | None:
        if not self.found.varies(operand):
            return 0
        return self.found.runs.get(operand.number) if isinstance(operand, Val) else None


def compared_bytes(sides: Iterable[tuple[LiftedLoop, SimdIterations]]) -> int:
    """The size of the widest values that differ between iterations and are compared; 8 where none are."""
    compared = (
        BITS[arg.ty] // 8
        for loop, side in sides
        for item in everything(loop.body)
        if isinstance(item, Let) and item.value.ty == "i1"
        for arg in item.args
        if arg.ty != "i1" and side.varies(arg)
    )
    return max(compared, default=8)
