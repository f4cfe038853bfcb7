"""Products that are added in one lane and subtracted in the next, by one instruction (vfmaddsub, vfmsubadd), kept together.

gcc makes complex arithmetic of them. Written lane by lane it finds the products, not the instruction: the lanes differ by a
sign, and with two fused operations in the text it takes the sign for a value of its own. The unchanged layout of ``lattice``
then had 8 % more instructions in its hot loop and took 4 % longer, and so had every other layout that keeps the two parts of
a number side by side.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from layout_advise.layoutalgebra.derive.structure import Axis, Candidate, Relayout
from layout_advise.mockup.ir.effects import Ty
from layout_advise.mockup.ir.lifted import Item, Let, Lifted, LiftedLoop, Operand, Val

LANES: dict[Ty, tuple[int, int]] = {"f64": (2, 4), "f32": (4, 8)}


def keeps_lanes(candidate: Candidate | None) -> bool:
    """Returns whether ``candidate`` leaves the lanes of one element nearer to each other than the elements of one field:
    where these are contiguous the compiler may rather vectorise over them."""
    relayouts = candidate.relayouts if candidate is not None else ()
    return all(
        axis.stride > relayout.structure.fields[field.field].bytes
        for relayout in relayouts
        for field in relayout.fields
        for axis in field.axes
    )


def elements_whole(candidate: Candidate | None) -> bool:
    """Returns whether ``candidate`` moves elements as a whole: what lay side by side in one does so still, and nothing else
    does."""
    relayouts = candidate.relayouts if candidate is not None else ()
    return all(len(_moves(relayout)) == 1 for relayout in relayouts) and not brings_together(candidate)


def brings_together(candidate: Candidate | None) -> bool:
    """Returns whether fields lie side by side in ``candidate`` that did not, or otherwise."""
    relayouts = candidate.relayouts if candidate is not None else ()
    return any(r.merged is not None or len(ways) > 1 for r in relayouts for ways in _moves(r).values())


def _moves(relayout: Relayout) -> dict[int, set[tuple[tuple[Axis, ...], int]]]:
    """By buffer: the ways in which fields got there, each with how far they were moved in their element."""
    found: dict[int, set[tuple[tuple[Axis, ...], int]]] = {}
    for field in relayout.fields:
        distance = field.offset - relayout.structure.fields[field.field].offset
        found.setdefault(field.buffer, set()).add((field.axes, distance))
    return found


def join_fmaddsub(lifted: Lifted) -> Lifted:
    """``lifted`` with the lanes of such an instruction as ``fmaddsub.N.K`` or ``fmsubadd.N.K`` (lane K of N) of all lanes'
    factors and addends: ``x0 .. xN-1, y0 .. yN-1, z0 .. zN-1``."""
    signs: dict[int, Operand] = {}
    return replace(lifted, body=_body(lifted.body, signs))


def _body(items: Sequence[Item], signs: dict[int, Operand]) -> tuple[Item, ...]:
    done: list[Item] = []
    at = 0
    while at < len(items):
        item = items[at]
        if isinstance(item, Let) and item.name == "fneg":
            signs[item.value.number] = item.args[0]
        pack = list(_pack(items, at))
        turned = [let for let in pack if let.name == "fneg"]
        known = {**signs, **{let.value.number: let.args[0] for let in turned}}
        together = _joined_lanes(sorted((let for let in pack if let.name == "fma"), key=lambda let: let.origin.lane), known)
        if together:
            signs.update(known)
            done += [*turned, *together]
        else:
            done.append(replace(item, body=_body(item.body, signs)) if isinstance(item, LiftedLoop) else item)
        at += len(pack) if together else 1
    return tuple(done)


def _pack(items: Sequence[Item], at: int) -> Iterator[Let]:
    """The lanes of one packed instruction that stand together from ``at`` on, with the signs turned for it."""
    first = items[at]
    if not isinstance(first, Let) or first.name not in ("fma", "fneg") or first.origin.pack is None:
        return
    for item in items[at:]:
        if not isinstance(item, Let) or item.origin.pack != first.origin.pack or item.name not in ("fma", "fneg"):
            return
        yield item


def _joined_lanes(lanes: Sequence[Let], signs: Mapping[int, Operand]) -> list[Let]:
    """``lanes`` written so; empty where they fill no vector register or the signs do not alternate."""
    if not lanes or len(lanes) not in LANES.get(lanes[0].value.ty, ()):
        return []
    if [item.origin.lane for item in lanes] != list(range(len(lanes))):
        return []
    bare = [signs.get(item.args[2].number) if isinstance(item.args[2], Val) else None for item in lanes]
    negated = [sign is not None for sign in bare]
    if negated not in ([k % 2 == first for k in range(len(lanes))] for first in (0, 1)):
        return []
    name = "fmaddsub" if negated[0] else "fmsubadd"
    addends = [item.args[2] if sign is None else sign for item, sign in zip(lanes, bare, strict=True)]
    args = (*(item.args[0] for item in lanes), *(item.args[1] for item in lanes), *addends)
    return [replace(item, name=f"{name}.{len(lanes)}.{k}", args=args) for k, item in enumerate(lanes)]
