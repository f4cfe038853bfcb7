"""Removes what is not needed: labels without a jump, formulas that nobody reads."""

from __future__ import annotations

from layout_advise.mockup.ir.lifted import (
    Item,
    Label,
    Let,
    LetLinear,
    LiftedLoop,
    Operand,
)  # fmt: skip


def without_idle_labels(items: list[Item] | tuple[Item, ...], wanted: set[int]) -> tuple[Item, ...]:
    """Removes labels without a jump."""
    found: list[Item] = []
    for item in items:
        if isinstance(item, Label) and item.number not in wanted:
            continue
        if isinstance(item, LiftedLoop):
            item = LiftedLoop(item.counter, item.trip, without_idle_labels(item.body, wanted), item.head)
        found.append(item)
    return tuple(found)


def without_unused(items: tuple[Item, ...], used: set[Operand]) -> tuple[Item, ...]:
    """Removes formulas without a use (left by inverted conditions and stripped bitcasts)."""
    found: list[Item] = []
    for item in items:
        if isinstance(item, Let | LetLinear) and item.value not in used:
            continue
        if isinstance(item, LiftedLoop):
            item = LiftedLoop(item.counter, item.trip, without_unused(item.body, used), item.head)
        found.append(item)
    return tuple(found)
