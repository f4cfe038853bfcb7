"""Checks that a lifted form is valid: what every pass may assume and has to leave."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterator, Sequence

from layout_advise.errors import InvalidFormError
from layout_advise.mockup.ir.effects import BITS, Ty
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
    Operand,
    Prefetch,
    Store,
    Val,
    Var,
    WayEnd,
    everything,
)
from layout_advise.mockup.ir.loop_body import operands

_COMPARISONS = frozenset(("eq", "ne", "slt", "sle", "ult", "ule", "foeq", "folt", "fole", "funo"))
_INTEGER = ("add", "sub", "mul", "and", "or", "xor", "neg", "not", "umulhi", "smulhi", "udiv", "urem", "sdiv", "srem")
_FLOAT = ("fadd", "fsub", "fmul", "fdiv", "fsqrt", "fneg", "fabs", "fma", "fmin", "fmax", "floor", "ceil", "ftrunc", "rint")
_UNIFORM = frozenset((*_INTEGER, *_FLOAT, "umin", "umax", "smin", "smax", "bswap", "pickbytes"))
"""Operations whose arguments and result have one type."""
_WIDTHS = {"zext": -1, "sext": -1, "trunc": 1, "bitcast": 0}
"""Conversions, with the sign of the arguments' width minus the result's."""


def verify_form(lifted: Lifted, after: str) -> None:
    """Raises InvalidFormError with the first fault of ``lifted``, as it is ``after`` a pass."""
    fault = next(faults(lifted), None)
    if fault is not None:
        raise InvalidFormError(after, fault)


def faults(lifted: Lifted) -> Iterator[str]:
    """Every way in which ``lifted`` is not valid, in words."""
    yield from _numbering(lifted)
    yield from _definitions(lifted)
    yield from _Uses(lifted).faults()
    yield from _jumps(lifted.body, frozenset())
    for item in everything(lifted.body):
        yield from _types(item)


def _numbering(lifted: Lifted) -> Iterator[str]:
    """Statements have numbers of their own, and so have labels."""
    items = list(everything(lifted.body))
    for uid, count in Counter(item.uid for item in items).items():
        if uid < 0 or count > 1:
            yield f"{count} statements have the number {uid}"
    for label, count in Counter(item.number for item in items if isinstance(item, Label)).items():
        if count > 1:
            yield f"label {label} stands in {count} places"


def _definitions(lifted: Lifted) -> Iterator[str]:
    """A value is defined once; values and variables have numbers of their own; each keeps its type."""
    items = list(everything(lifted.body))
    values = [live.value for live in lifted.live_ins]
    values += [item.value for item in items if isinstance(item, Let | LetLinear | Load | Call)]
    values += [item.counter for item in items if isinstance(item, LiftedLoop)]
    for number, count in Counter(value.number for value in values).items():
        if count > 1:
            yield f"value {number} is defined {count} times"
    variables = {item.variable for item in items if isinstance(item, Assign)}
    named: dict[int, Val | Var] = {}
    operands: list[Val | Var] = [*values, *variables]
    for operand in operands:
        if named.setdefault(operand.number, operand) != operand:
            yield f"{operand} and {named[operand.number]} have one number"


Known = set[Operand] | None
"""The values that are defined at a place; None where no way leads to it."""


class _Uses:
    """Every value is defined on all ways to where it is read; every variable that is read is assigned somewhere."""

    def __init__(self, lifted: Lifted) -> None:
        self.lifted = lifted
        self.assigned = {item.variable for item in everything(lifted.body) if isinstance(item, Assign)}
        self.arriving: dict[int, set[Operand]] = {}
        """By label, the values that are defined on every way to it so far."""

    def faults(self) -> Iterator[str]:
        """The operands that are read and not defined."""
        known = yield from self._body(self.lifted.body, {live.value for live in self.lifted.live_ins})
        for out in self.lifted.live_outs:
            yield from self._read(out.operand, known, "the end")

    def _body(self, items: Sequence[Item], known: Known) -> Generator[str, None, Known]:
        """Goes through a body; ``known`` are the values defined so far. Returns those defined at its end."""
        for item in items:
            for operand in operands(item):
                yield from self._read(operand, known, f"{type(item).__name__} {item.uid}")
            if isinstance(item, Label):
                here = self.arriving.pop(item.number, None)
                if here is not None:
                    known = here if known is None else known & here
            elif isinstance(item, Goto):
                if known is not None:
                    self.arriving[item.label] = known & self.arriving.get(item.label, known)
                known = known if item.condition is not None else None
            elif isinstance(item, WayEnd):
                known = None
            elif isinstance(item, LiftedLoop):
                known = yield from self._loop(item, known)
            elif isinstance(item, Let | LetLinear | Load | Call) and known is not None:
                known.add(item.value)
        return known

    def _loop(self, loop: LiftedLoop, known: Known) -> Generator[str, None, Known]:
        """Returns what is defined behind a loop. One with a trip count is taken to run, one without is left by jumps."""
        behind = yield from self._body(loop.body, None if known is None else known | {loop.counter})
        if loop.trip is None:
            return None
        return known if behind is None else behind - {loop.counter}

    def _read(self, operand: Operand, known: Known, where: str) -> Iterator[str]:
        defined = operand in self.assigned if isinstance(operand, Var) else known is None or operand in known
        if not isinstance(operand, Imm) and not defined:
            yield f"{where} reads {operand}, which is not defined there"


def _jumps(items: Sequence[Item], around: frozenset[int]) -> Iterator[str]:
    """Jumps go forward, to a label of their body or of one around it; loops without a trip count can be left."""
    ahead = Counter(item.number for item in items if isinstance(item, Label))
    for item in items:
        if isinstance(item, Label):
            ahead[item.number] -= 1
        elif isinstance(item, Goto) and not ahead[item.label] and item.label not in around:
            yield f"Goto {item.uid} jumps to label {item.label}, which does not lie ahead"
        elif isinstance(item, LiftedLoop):
            yield from _jumps(item.body, around | {number for number, count in ahead.items() if count})
            own = {one.number for one in everything(item.body) if isinstance(one, Label)}
            inside = everything(item.body)
            leaving = (one for one in inside if isinstance(one, WayEnd) or (isinstance(one, Goto) and one.label not in own))
            if item.trip is None and next(leaving, None) is None:
                yield f"LiftedLoop {item.uid} never ends"


def _types(item: Item) -> Iterator[str]:
    """Operands have the types that their statement needs."""
    where = f"{type(item).__name__} {item.uid}"
    match item:
        case Let():
            yield from (f"{where}: {fault}" for fault in _operation(item))
        case LetLinear(value, linear):
            yield from _linear(linear, where)
            if value.ty != "i64":
                yield f"{where} defines a {value.ty}"
        case Load(address=address) | Store(address=address) | Atomic(address=address) | Prefetch(address=address):
            yield from _linear(address, where)
            if isinstance(item, Store) and item.stored.ty != item.ty:
                yield f"{where} stores a {item.stored.ty} as {item.ty}"
        case Assign(variable, operand) if variable.ty != operand.ty:
            yield f"{where} assigns a {operand.ty} to a {variable.ty}"
        case Goto(_, condition) if condition is not None and condition.ty != "i1":
            yield f"{where} depends on a {condition.ty}"
        case LiftedLoop(counter, trip) if counter.ty != "i64" or (trip is not None and trip.ty != "i64"):
            yield f"{where} does not count in 64 bits"


def _linear(linear: Linear, where: str) -> Iterator[str]:
    """Atoms are different operands of 64 bits, none a constant, with coefficients other than 0."""
    atoms = [atom for atom, _ in linear.terms]
    if len(set(atoms)) < len(atoms) or any(coef == 0 for _, coef in linear.terms):
        yield f"{where} has a linear form with equal atoms, or with none of one"
    if any(isinstance(atom, Imm) or atom.ty != "i64" for atom in atoms):
        yield f"{where} has a linear form of other operands than 64-bit integers"


def _operation(let: Let) -> Iterator[str]:
    """Arguments and result of an operation fit together."""
    types, ty, name = [arg.ty for arg in let.args], let.value.ty, let.name
    if name in _UNIFORM and {*types} != {ty}:
        yield f"{name} of {types} gives no {ty}"
    if name in _COMPARISONS and (ty != "i1" or len({*types}) != 1):
        yield f"{name} of {types} gives no {ty}"
    if name == "select" and types != ["i1", ty, ty]:
        yield f"select of {types} gives no {ty}"
    if name in _WIDTHS and not _converts(name, types, ty):
        yield f"{name} of {types} gives no {ty}"


def _converts(name: str, types: Sequence[Ty], ty: Ty) -> bool:
    """Returns whether a conversion has one argument, of more, fewer or as many bits as its result."""
    difference = BITS[types[0]] - BITS[ty] if len(types) == 1 else None
    return difference is not None and (difference > 0) - (difference < 0) == _WIDTHS[name]
