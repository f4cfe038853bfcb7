"""Re-emitting the lanes of packed instructions as vector statements (identity only)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from layout_advise.mockup.lifted import Assign, Item, Operand

if TYPE_CHECKING:
    from layout_advise.mockup.emit.program import Writer


@dataclass(slots=True)
class Pack:
    """The lanes of one packed statement, by lane."""

    items: dict[int, Item]
    lanes: int
    name: str


@dataclass(slots=True)
class Packs:
    """``leaders[id(item)]`` is emitted as a vector statement in place of that item; the other ``members`` vanish."""

    leaders: dict[int, Pack] = field(default_factory=dict)
    members: set[int] = field(default_factory=set)

    def lane_text(self, operand: Operand) -> str | None:
        """A value that lives in a lane of a vector."""
        return None

    def emit(self, pack: Pack, writer: Writer) -> None:
        """One vector statement."""

    def moves(self, group: Sequence[Assign], writer: Writer) -> bool:
        """Parallel moves of whole vectors; False where there are none."""
        return False

    def lane_text_of_variable(self, number: int) -> str | None:
        """As ``lane_text`` for the variable with this number."""
        return None

    def holds(self, number: int) -> bool:
        """Whether the value with this number lives in a vector."""
        return False

    def declarations(self) -> list[str]:
        """Declarations of the vectors that live longer than their block."""
        return []
