"""Data-dependent branches: jumps and trip counts in the loops of a lifted hotspot that depend on loaded data.

A processor predicts such branches from those before. Where the same call runs again and again it learns some ten thousand
of them, which the running program's calls do not repeat (``docs/decisions/0035``).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from layout_advise.mockup.ir.lifted import (
    Assign,
    Call,
    Goto,
    Item,
    Let,
    LetLinear,
    Lifted,
    LiftedLoop,
    Load,
    Operand,
    everything,
)
from layout_advise.mockup.ir.loop_body import defined


def branches_on_data(lifted: Lifted) -> bool:
    """Returns whether a jump in a loop, or an inner loop's trip count, depends on a value that is loaded in a loop, from
    another address each time; what is loaded before the loop (sizes that Fortran passes by reference) does not count."""
    loops = [item for item in lifted.body if isinstance(item, LiftedLoop)]
    inside = [item for loop in loops for item in (loop, *everything(loop.body))]
    loaded = _from_loads(inside)
    return any(what in loaded for loop in loops for what in _deciding(loop.body))


def _deciding(body: Sequence[Item]) -> Iterable[Operand | None]:
    return [
        item.condition if isinstance(item, Goto) else item.trip
        for item in everything(body)
        if isinstance(item, Goto | LiftedLoop)
    ]


def _from_loads(items: Sequence[Item]) -> set[Operand | None]:
    """The values and variables that depend on something that these loops load from changing addresses, or that a call
    returns."""
    changing = set(defined(items))
    known: set[Operand | None] = set()
    before = -1
    while len(known) > before:
        before = len(known)
        for item in items:
            match item:
                case Load(value=value, address=address) if any(atom in changing for atom, _ in address.terms):
                    known.add(value)
                case Call(value=value):
                    known.add(value)
                case Let(value=value, name=name, args=args) if name.startswith(("given.", "returned.")) or known & {*args}:
                    known.add(value)
                case LetLinear(value=value, linear=linear) if any(atom in known for atom, _ in linear.terms):
                    known.add(value)
                case Assign(variable=variable, operand=operand) if operand in known:
                    known.add(variable)
                case _:  # what calls and atomic operations give is a Let after them
                    continue
    return known
