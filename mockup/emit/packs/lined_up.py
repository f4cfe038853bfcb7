"""Which lanes lie one after another in a new layout, as they did in memory."""

from __future__ import annotations

from collections.abc import Sequence

from layout_advise.mockup.emit.packs.pack import Packs
from layout_advise.mockup.ir.effects import BITS
from layout_advise.mockup.ir.lifted import Let
from layout_advise.mockup.remap.sites import ElementPlace, RemapPlan


def in_one_piece(packs: Packs, plan: RemapPlan) -> bool:
    """Returns whether the lanes of every load and store lie one after another in the new layout, too."""
    accesses = [pack for pack in packs.at.values() if not isinstance(pack.members[0], Let)]
    return all(lined_up([plan.places.get(m.uid) for m in pack.members], BITS[pack.ty] // 8) for pack in accesses)


def lined_up(places: Sequence[ElementPlace | None], size: int) -> bool:
    """Returns whether accesses of ``size`` bytes, one after another in the old layout, are so at their ``places``."""
    known = [place for place in places if place is not None]
    if not known:
        return True
    if len(known) < len(places) or any(len(place.pieces) != 1 or place.within for place in known):
        return False
    first = known[0]
    alike = all(_shape(place) == _shape(first) and place.relayout is first.relayout for place in known)
    starts = [_start(place) for place in known]
    return alike and starts == [starts[0] + size * lane for lane in range(len(starts))]


def _start(place: ElementPlace) -> int:
    """Returns where in its buffer an access begins, but for what the indices add."""
    (piece,) = place.pieces
    inner = len(place.relayout.structure.dims) - 1
    within = sum(a.stride * piece.inner for a in piece.map.axes if a.part == "whole" and a.dim == inner)
    return piece.map.offset + piece.delta + within


def _shape(place: ElementPlace) -> tuple[object, ...]:
    (piece,) = place.pieces
    axes = tuple((a.dim, a.part, a.block, a.stride) for a in piece.map.axes)
    return place.site.offset, place.site.given, place.terms, place.along, piece.map.buffer, axes, piece.inner, piece.at
