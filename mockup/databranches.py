"""Whether the way that a lifted hotspot takes in its loops depends on the data it loads.

A processor predicts such branches from those before. Where the same call runs again and again it learns some ten thousand
of them, which the running program's calls do not repeat (``docs/decisions/0035``).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from layout_advise.mockup.lifted import (
    Assign,
    Call,
    Goto,
    Item,
    Let,
    LetLinear,
    Lifted,
    Load,
    Loop,
    Operand,
    everything,
)


def branches_on_data(lifted: Lifted) -> bool:
    """Whether a jump in a loop, or how often an inner loop runs, depends on a value that was loaded."""
    loaded = _from_loads(list(everything(lifted.body)))
    loops = [item for item in everything(lifted.body) if isinstance(item, Loop)]
    return any(what in loaded for loop in loops for what in _deciding(loop.body))


def _deciding(body: Sequence[Item]) -> Iterable[Operand | None]:
    return [
        item.condition if isinstance(item, Goto) else item.trip for item in everything(body) if isinstance(item, Goto | Loop)
    ]


def _from_loads(items: Sequence[Item]) -> set[Operand | None]:
    """The values and variables that depend on something loaded, or returned by a call."""
    known: set[Operand | None] = set()
    before = -1
    while len(known) > before:
        before = len(known)
        for item in items:
            match item:
                case Load(value=value) | Call(value=value):
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
