"""Operations of several lanes: what :mod:`layout_advise.mockup.emit.packs.find` finds and ``packwriter`` writes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from layout_advise.mockup.ir.effects import Ty
from layout_advise.mockup.ir.lifted import Let, LetLinear, Load, Operand, Store, Var

Member = Let | Load | Store
Plain = Let | LetLinear | Load | Store
ALTERNATING = frozenset(("fmaddsub", "fmsubadd"))
"""Adds and subtracts in turn: a lane names all operands."""


@dataclass(frozen=True, slots=True)
class Pack:
    """One operation ``name`` (``addsub``: subtracted and added in turn), load or store of ``lanes`` lanes. ``members`` are
    those that count, in order, ``numbers`` which lanes they are: of an operation others may be nobody's."""

    name: str
    ty: Ty
    members: tuple[Member, ...]
    numbers: tuple[int, ...]
    lanes: int

    def columns(self) -> tuple[tuple[Operand | None, ...], ...]:
        """The operands, each with its lanes; None in those that do not count."""
        first = self.members[0]
        if isinstance(first, Let) and self.name in ALTERNATING:
            n = self.lanes
            return tuple(first.args[k : k + n] for k in range(0, len(first.args), n))
        if isinstance(first, Let):
            by_lane = {n: m.args for n, m in zip(self.numbers, self.members, strict=True) if isinstance(m, Let)}
            lanes = range(self.lanes)
            return tuple(tuple(by_lane[n][k] if n in by_lane else None for n in lanes) for k in range(len(first.args)))
        return (tuple(m.stored for m in self.members if isinstance(m, Store)),) if isinstance(first, Store) else ()


@dataclass(frozen=True, slots=True)
class Packs:
    """``at`` holds each pack by the number of its first member; ``variables`` are those that make up one vector;
    ``all_of_them`` tells that no packed instruction was left in single lanes for being in a rerolled loop."""

    at: Mapping[int, Pack] = field(default_factory=dict)
    variables: tuple[tuple[Var, ...], ...] = ()
    all_of_them: bool = True
