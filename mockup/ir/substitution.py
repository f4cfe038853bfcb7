"""Other operands in the place of some, in all that reads them: addresses, arguments, conditions, trip counts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType

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
    LiftedLoop,
    Linear,
    Load,
    OpaqueCall,
    Operand,
    Prefetch,
    RuntimeCall,
    Store,
    WayEnd,
)

Known = Mapping[Operand, Operand]
Sums = Mapping[Operand, Linear]
NO_SUMS: Sums = MappingProxyType({})


def substituted(items: Iterable[Item], known: Known, sums: Sums = NO_SUMS) -> tuple[Item, ...]:
    """``items`` reading ``known[x]`` wherever they read ``x``; what they define keeps its name. In addresses and sums, what
    is in ``sums`` is written out as these."""

    def deep(item: Item) -> Item:
        read = reading(item, lambda operand: known.get(operand, operand), lambda linear: written_out(linear, known, sums))
        return replace(read, body=tuple(deep(one) for one in read.body)) if isinstance(read, LiftedLoop) else read

    return tuple(deep(item) for item in items)


def reading(item: Item, operand: Callable[[Operand], Operand], linear: Callable[[Linear], Linear]) -> Item:
    """The statement with ``operand`` of each that it reads, ``linear`` of each sum; a loop keeps its body."""
    match item:
        case Let() | Call() | RuntimeCall():
            return replace(item, args=tuple(operand(o) for o in item.args))
        case LetLinear():
            return replace(item, linear=linear(item.linear))
        case Load() | Prefetch():
            return replace(item, address=linear(item.address))
        case Store():
            return replace(item, address=linear(item.address), stored=operand(item.stored))
        case Atomic():
            return replace(item, address=linear(item.address), args=tuple(operand(o) for o in item.args))
        case OpaqueCall():
            stack = None if item.stack is None else operand(item.stack)
            args = tuple((location, operand(o)) for location, o in item.args)
            return replace(item, target=operand(item.target), stack=stack, args=args)
        case Assign():
            return replace(item, operand=operand(item.operand))
        case Goto():
            return item if item.condition is None else replace(item, condition=operand(item.condition))
        case Label() | WayEnd():
            return item
    return item if item.trip is None else replace(item, trip=operand(item.trip))


def written_out(linear: Linear, known: Known, sums: Sums = NO_SUMS) -> Linear:
    """The same sum of ``known`` operands and ``sums``; several of its terms may have become one."""
    const, terms = linear.const, dict[Operand, int]()
    for atom, coef in linear.terms:
        meant = sums.get(atom) or Linear(0, ((known.get(atom, atom), 1),))
        const += coef * meant.const
        for operand, times in meant.terms:
            if isinstance(operand, Imm):
                const += coef * times * operand.value
            else:
                terms[operand] = terms.get(operand, 0) + coef * times
    return Linear(const % (1 << 64), tuple((atom, coef) for atom, coef in terms.items() if coef))
