"""Dead-code removal: labels without a jump, formulas without a use."""

from __future__ import annotations

from layout_advise.mockup.ir.lifted import (
    Assign,
    Atomic,
    Call,
    Goto,
    Item,
    Label,
    Let,
    LetLinear,
    LiftedLoop,
    Load,
    OpaqueCall,
    Operand,
    RuntimeCall,
    Store,
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


def note_used(items: tuple[Item, ...], used: set[Operand]) -> None:
    """Every operand that some statement reads."""
    for item in items:
        match item:
            case Let(_, _, args, _) | Call(_, _, args, _):
                used.update(args)
            case OpaqueCall(_, target, stack, handed, _):
                used.update((target, *(operand for _, operand in handed)))
                if stack is not None:
                    used.add(stack)
            case Atomic(_, _, linear, args, _):
                used.update((*args, *(atom for atom, _ in linear.terms)))
            case RuntimeCall(_, args, _, _):
                used.update(args)
            case LetLinear(_, linear, _) | Load(_, linear, _, _, _):
                used.update(atom for atom, _ in linear.terms)
            case Store(_, linear, stored, _, _, _):
                used.update((stored, *(atom for atom, _ in linear.terms)))
            case Assign(_, operand, _):
                used.add(operand)
            case Goto(_, condition) if condition is not None:
                used.add(condition)
            case LiftedLoop(_, trip, body, _):
                if trip is not None:
                    used.add(trip)
                note_used(body, used)


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
