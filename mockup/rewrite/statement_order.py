"""Statements in other orders: of vectorised loops that of a source, of others a second one that it may have had.

Of vectorised loops each result is computed in one piece.

A vectorised original computes one operation of all fields, then the next of all fields. Lifted lane by lane, these rows of
operations would stay interleaved, and the compiler keeps the order: several long chains then run side by side in the
processor, which no source has that computes one field after the other. On ``pixels`` that alone made the mock-up of a
structure of arrays 11 % faster than the hand-written one at -O3, and that of an array of such structures 15 % at -O2.

Loads move too, behind stores that are shown to be elsewhere. One vector loads all fields of ``pixels`` at once; in blocks of
eight that became four loads at the top, of four cache lines: beyond the L2 1.4 times as fast as the original, where the
hand-written blocks, which load a field where they compute it, take longer. Stores and control stay as they are.

In other loops the order is the source's, as far as machine code tells it: which operand of an operation was loaded first it
does not, as one of them is loaded by the instruction that computes. Compilers make different code of both orders.
Under ``-fno-tree-ter`` ``particles`` as a structure of arrays at -O3 gained 4.2 times with the order of the machine code and
2.9 with the other one, in which gcc loads the same vector twice. So both are timed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from layout_advise.mockup.evidence.binding import access_bytes
from layout_advise.mockup.evidence.evidence import Evidence
from layout_advise.mockup.ir.lifted import Call, Goto, Item, Let, LetLinear, Lifted, LiftedLoop, Load, Operand, Store, Val
from layout_advise.mockup.ir.loop_body import operands

Pure = Let | LetLinear | Call
Movable = Pure | Load


def sink_operations(lifted: Lifted, evidence: Evidence) -> Lifted:
    """Returns ``lifted`` with the operations of its vectorised loops moved to where their result is first needed.

    Needs: rerolled loops; of the evidence nothing.
    Gives: each result computed in one piece.
    Keeps: the order of stores and control; loads pass only stores that are shown to be elsewhere.
    """
    return replace(lifted, body=_body(lifted.body))


def sink_loads(lifted: Lifted) -> Lifted:
    """``lifted`` with each load right before what first needs it, those of one operation in the opposite order of its
    operands; no load passes a store that is not shown to be elsewhere, or a call or jump. The order of vectorised loops
    stays: it tells more than that of a source."""
    return replace(lifted, body=_reversed(lifted.body))


def _reversed(items: Sequence[Item]) -> tuple[Item, ...]:
    inner = [replace(item, body=_reversed(item.body)) if isinstance(item, LiftedLoop) else item for item in items]
    return tuple(inner) if _is_vectorised(inner) or _has_packs(inner) else tuple(_late(inner, (Load,), reversed))


def _has_packs(items: Sequence[Item]) -> bool:
    return any(isinstance(item, Let) and item.origin.pack is not None for item in items)


def _body(items: Sequence[Item]) -> tuple[Item, ...]:
    inner = [replace(item, body=_body(item.body)) if isinstance(item, LiftedLoop) else item for item in items]
    return tuple(_late(inner, (Let, LetLinear, Call, Load), iter)) if _is_vectorised(inner) else tuple(inner)


def _is_vectorised(items: Sequence[Item]) -> bool:
    """Returns whether a body stands for several lanes, or most of its operations are lanes of packed instructions. Where
    these are a few among scalar ones, the order is the source's already, as its compiler left it: moving operations made
    the unchanged layout of ``lattice`` 10 % slower at -O3."""
    if any(isinstance(item, Load | Store) and item.lanes for item in items):
        return not any(isinstance(item, Goto) for item in items)  # with branches it was unrolled only
    packed = [item.origin.pack is not None for item in items if isinstance(item, Let)]
    return 2 * sum(packed) > len(packed)


def _late(
    items: Sequence[Item],
    kinds: tuple[type[Movable], ...],
    turn: Callable[[Sequence[Operand]], Iterator[Operand]],
) -> Iterator[Item]:
    """The same items, those of ``kinds`` as late as what needs them, the next store or control item allow; what one item
    needs in the order that ``turn`` gives its operands."""
    waiting: dict[int, Movable] = {}
    for item in items:
        if isinstance(item, kinds) and not (isinstance(item, Load) and item.guarded):
            waiting[item.value.number] = item
        elif isinstance(item, Let | LetLinear | Load | Store):
            for operand in turn(operands(item)):
                yield from _needed(operand, waiting)
            if isinstance(item, Store):
                yield from _not_apart(item, waiting)
            yield item
        else:
            yield from _all(waiting)
            yield item
    yield from _all(waiting)


def _not_apart(store: Store, waiting: dict[int, Movable]) -> Iterator[Movable]:
    """The waiting loads that have to come before ``store``, and what they wait for."""
    for load in [w for w in waiting.values() if isinstance(w, Load) and not _apart(w, store)]:
        yield from _needed(load.value, waiting)


def _apart(load: Load, store: Store) -> bool:
    """Returns whether their addresses, whatever the values in them, are so far apart that they share no byte."""
    if dict(load.address.terms) != dict(store.address.terms):
        return False
    ahead = (load.address.const - store.address.const) % 2**64
    return ahead >= access_bytes(store) and 2**64 - ahead >= access_bytes(load)


def _needed(operand: Operand, waiting: dict[int, Movable]) -> Iterator[Movable]:
    """Returns what ``operand`` waits for, operands first; each item once. A list, not recursion: chains can be long."""
    work: list[Operand | Movable] = [operand]
    while work:
        at = work.pop()
        if isinstance(at, Pure | Load):
            yield at
        elif isinstance(at, Val) and (item := waiting.pop(at.number, None)) is not None:
            work.append(item)
            work += reversed(operands(item))


def _all(waiting: dict[int, Movable]) -> Iterator[Movable]:
    while waiting:
        item = next(iter(waiting.values()))
        yield from _needed(item.value, waiting)
