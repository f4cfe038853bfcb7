"""Other operands in the place of some, in all that reads them: addresses, arguments, conditions, trip counts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType

from layout_advise.mockup.lifted import (
    Assign,
    Atomic,
    Call,
    Goto,
    Imm,
    Item,
    Label,
    Let,
    LetLinear,
    Linear,
    Load,
    OpaqueCall,
    Operand,
    RuntimeCall,
    Store,
)

Known = Mapping[Operand, Operand]
Sums = Mapping[Operand, Linear]


def substituted(items: Iterable[Item], known: Known, sums: Sums = MappingProxyType({})) -> tuple[Item, ...]:
    """``items`` reading ``known[x]`` wherever they read ``x``; what they define keeps its name. In addresses and sums, what
    is in ``sums`` is written out as these."""
    return tuple(_item(item, known, sums) for item in items)


def _item(item: Item, known: Known, sums: Sums) -> Item:
    match item:
        case Let() | Call() | RuntimeCall():
            return replace(item, args=_all(item.args, known))
        case LetLinear():
            return replace(item, linear=_linear(item.linear, known, sums))
        case Load():
            return replace(item, address=_linear(item.address, known, sums))
        case Store():
            return replace(item, address=_linear(item.address, known, sums), stored=known.get(item.stored, item.stored))
        case Atomic():
            return replace(item, address=_linear(item.address, known, sums), args=_all(item.args, known))
        case OpaqueCall():
            stack = None if item.stack is None else known.get(item.stack, item.stack)
            args = tuple((location, known.get(operand, operand)) for location, operand in item.args)
            return replace(item, target=known.get(item.target, item.target), stack=stack, args=args)
        case Assign():
            return replace(item, operand=known.get(item.operand, item.operand))
        case Goto():
            return item if item.condition is None else Goto(item.label, known.get(item.condition, item.condition))
        case Label():
            return item
    trip = None if item.trip is None else known.get(item.trip, item.trip)
    return replace(item, trip=trip, body=substituted(item.body, known, sums))


def _all(operands: Iterable[Operand], known: Known) -> tuple[Operand, ...]:
    return tuple(known.get(o, o) for o in operands)


def _linear(linear: Linear, known: Known, sums: Sums) -> Linear:
    """The same sum; several of its terms may have become one."""
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
