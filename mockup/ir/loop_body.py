"""Facts about the values of a loop body: constants, linear forms, what iterations hand on, what is defined and read."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence

from layout_advise.mockup.ir.effects import BITS
from layout_advise.mockup.ir.lifted import (
    Assign,
    Atomic,
    Call,
    Goto,
    Imm,
    Item,
    Let,
    LetLinear,
    Lifted,
    LiftedLoop,
    Load,
    OpaqueCall,
    Operand,
    Prefetch,
    RuntimeCall,
    Store,
    Val,
    Var,
    everything,
)
from layout_advise.mockup.ir.linear_forms import Form, form_of, forms_of

ReadOnly = Callable[[int, int], bytes | None]
"""Bytes at an address of the program that cannot change at run time, None elsewhere."""
Names = Mapping[int, Hashable]


def constant_names(lifted: Lifted, read: ReadOnly) -> Names:
    """Values that are constants of the program, by number; equal names are equal values."""
    names: dict[int, Hashable] = {}
    _name(lifted.body, read, names)
    return names


def _name(items: Sequence[Item], read: ReadOnly, names: dict[int, Hashable]) -> None:
    for item in items:
        if isinstance(item, Load) and not item.address.terms:
            data = read(item.address.const, BITS[item.value.ty] // 8)
            if data is not None:
                names[item.value.number] = ("bits", item.value.ty, int.from_bytes(data, "little"))
        elif isinstance(item, Let):
            args = [_constant(a, names) for a in item.args]
            if all(a is not None for a in args):
                names[item.value.number] = (item.name, item.value.ty, *args)
        elif isinstance(item, LiftedLoop):
            _name(item.body, read, names)


def _constant(operand: Operand, names: Names) -> Hashable | None:
    if isinstance(operand, Imm):
        return ("bits", operand.ty, operand.value)
    return names.get(operand.number) if isinstance(operand, Val) else None


class Body:
    """A straight-line loop body with what is known of its values."""

    def __init__(self, loop: LiftedLoop, names: Names) -> None:
        self.loop = loop
        self.items = loop.body
        self.names = names
        self.defined: dict[int, Item] = {}
        for item in loop.body:
            if isinstance(item, Let | LetLinear | Load | Call):
                self.defined[item.value.number] = item
        self.position = {item.uid: k for k, item in enumerate(loop.body)}
        self.forms = forms_of(loop.body, loop.counter)
        self.addresses = {i.uid: form_of(i.address, loop.counter) for i in loop.body if isinstance(i, Load | Store)}
        self.carried = carried(loop, self.defined)

    def inside(self, operand: Operand) -> bool:
        """Returns whether ``operand`` is a value of this body (and no constant of the program)."""
        return isinstance(operand, Val) and operand.number in self.defined and operand.number not in self.names

    def key(self, operand: Operand) -> Hashable:
        """Equal keys: equal operands (for operands that no lane computes)."""
        constant = _constant(operand, self.names)
        return operand if constant is None else constant

    def form(self, operand: Operand) -> Form | None:
        """The linear form of a value that the counter moves."""
        found = self.forms.get(operand.number) if isinstance(operand, Val) else None
        return found if found is not None and found.step else None


def arguments(item: Item) -> tuple[Operand, ...]:
    """Operands of a formula or a call."""
    return item.args if isinstance(item, Let | Call | RuntimeCall) else ()


def straight(loop: LiftedLoop) -> bool:
    """Returns whether the body is formulas and accesses, with assignments at its end: no jumps, no inner loop."""
    if loop.trip is None or any(not isinstance(i, Let | LetLinear | Load | Store | Call | Assign) for i in loop.body):
        return False
    ends = [isinstance(i, Assign) for i in loop.body]
    return ends == sorted(ends)


def carried(loop: LiftedLoop, defined: Mapping[int, Item]) -> dict[Var, tuple[int, ...]] | None:
    """The variables that an iteration hands to the next: through which values, one computed from the one before, the last of
    them assigned. None where some variable goes another way."""
    read = {o for i in loop.body for o in operands(i)}
    found: dict[Var, tuple[int, ...]] = {}
    for item in loop.body:
        if not isinstance(item, Assign) or item.variable not in read:
            continue
        way = _way(item.operand, item.variable, defined, loop)
        if way is None or item.variable in found:
            return None
        found[item.variable] = way
    return found


def _way(last: Operand, variable: Var, defined: Mapping[int, Item], loop: LiftedLoop) -> tuple[int, ...] | None:
    """From the variable to its next value, where there is just one way."""
    touched: set[Operand] = {variable}
    for item in loop.body:
        if isinstance(item, Let | LetLinear | Load | Call) and any(o in touched for o in operands(item)):
            touched.add(item.value)
    way: list[int] = []
    at = last
    while at != variable:
        if not isinstance(at, Val) or at not in touched:
            return None
        way.append(at.number)
        before = [o for o in operands(defined[at.number]) if o in touched]
        if len(before) != 1 or not isinstance(defined[at.number], Let):
            return None
        at = before[0]
    return tuple(reversed(way)) or None


def operands(item: Item) -> tuple[Operand, ...]:
    """The operands that a statement itself reads: of a loop its trip count, not what its body reads."""
    match item:
        case Let() | Call() | RuntimeCall():
            return item.args
        case LetLinear():
            return tuple(atom for atom, _ in item.linear.terms)
        case Load() | Prefetch():
            return tuple(atom for atom, _ in item.address.terms)
        case Store():
            return (*(atom for atom, _ in item.address.terms), item.stored)
        case Atomic():
            return (*(atom for atom, _ in item.address.terms), *item.args)
        case OpaqueCall():
            stack = (item.stack,) if item.stack is not None else ()
            return (item.target, *stack, *(operand for _, operand in item.args))
        case Assign():
            return (item.operand,)
        case Goto():
            return (item.condition,) if item.condition is not None else ()
        case LiftedLoop():
            return (item.trip,) if item.trip is not None else ()
    return ()


def defined(items: Sequence[Item]) -> Iterator[Operand]:
    """The values and variables that the items of a loop define, those of the loops in it included."""
    for item in items:
        if isinstance(item, Let | LetLinear | Load | Call):
            yield item.value
        elif isinstance(item, Assign):
            yield item.variable
        elif isinstance(item, LiftedLoop):
            yield item.counter
            yield from defined(item.body)


def used(items: Sequence[Item]) -> Iterator[Operand]:
    """Returns what the statements read, those of the loops in them included, as often as they do."""
    for item in everything(items):
        yield from operands(item)


def first_free_number(lifted: Lifted) -> int:
    """Returns a number above those of all values and variables."""
    named = (*(live.value for live in lifted.live_ins), *defined(lifted.body), *used(lifted.body))
    return max((o.number for o in named if not isinstance(o, Imm)), default=0) + 1
