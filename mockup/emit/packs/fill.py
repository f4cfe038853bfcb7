"""Lanes that one packed instruction shares with another: computed twice again, as the machine code does.

The lifter finds that two operations on the same operands are one value. Of one of the two packs that lane is nobody's then,
and what reads the whole vector would have to put it together from two (``pixels``: 0.0625 stands in two vectors of factors;
a lane moved in the middle of the chain took 20 % of the time on one processor).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from layout_advise.mockup.emit.packs.pack import ALTERNATING, Pack, Plain
from layout_advise.mockup.ir.lifted import Let, Operand, Val


@dataclass(frozen=True, slots=True)
class _Gap:
    """Operand ``position`` of ``reader`` is ``pack`` but for the lanes ``missing``, where others stand."""

    pack: Pack
    reader: Pack
    position: int
    missing: tuple[tuple[int, Let], ...]


def fill_shared_lanes(items: Sequence[Plain], packs: Sequence[Pack], fresh: Iterator[tuple[int, int]]) -> list[Plain] | None:
    """Returns ``items`` with the shared lanes computed in each of their packs; None where there are none.

    ``fresh`` yields numbers of new values and of the statements that define them.
    """
    behind: dict[int, list[Let]] = {}
    changed: dict[int, Let] = {}
    own: dict[tuple[int, int], tuple[Val, Let]] = {}
    for gap in _gaps(items, packs):
        for lane, let in gap.missing:
            key = gap.pack.members[0].uid, lane
            if key not in own:
                origin = replace(gap.pack.members[0].origin, lane=lane)
                number, uid = next(fresh)
                copy = replace(let, value=replace(let.value, number=number), origin=origin, uid=uid)
                own[key] = let.value, copy
                behind.setdefault(let.uid, []).append(copy)
            value, copy = own[key]
            member = gap.reader.members[gap.reader.numbers.index(lane)]
            assert isinstance(member, Let)
            now = changed.get(member.uid, member)
            if value == let.value:
                args = tuple(copy.value if k == gap.position else a for k, a in enumerate(now.args))
                changed[member.uid] = replace(now, args=args)
    if not changed:
        return None
    return [one for item in items for one in (changed.get(item.uid, item), *behind.get(item.uid, ()))]


def _gaps(items: Sequence[Plain], packs: Sequence[Pack]) -> Iterator[_Gap]:
    lets = {i.value.number: i for i in items if isinstance(i, Let)}
    partial = [p for p in packs if isinstance(p.members[0], Let) and len(p.members) < p.lanes and p.name not in ALTERNATING]
    of = {m.value.number: p for p in partial for m in p.members if isinstance(m, Let)}
    for reader in packs:
        if not isinstance(reader.members[0], Let) or reader.name in ALTERNATING:
            continue
        for position, column in enumerate(reader.columns()):
            pack = next((of[a.number] for a in column if isinstance(a, Val) and a.number in of), None)
            missing = _missing(pack, reader, column, lets) if pack is not None else ()
            if pack is not None and missing:
                yield _Gap(pack, reader, position, missing)


def _missing(
    pack: Pack, reader: Pack, column: Sequence[Operand | None], lets: Mapping[int, Let]
) -> tuple[tuple[int, Let], ...]:
    """The lanes that ``column`` has from elsewhere, by the same operation; none where it is not the pack's otherwise."""
    if pack.lanes != reader.lanes or len(reader.members) < reader.lanes:
        return ()
    values = {n: m.value for n, m in zip(pack.numbers, pack.members, strict=True) if isinstance(m, Let)}
    found = []
    for lane, operand in enumerate(column):
        if lane in values:
            if operand != values[lane]:
                return ()
            continue
        let = lets.get(operand.number) if isinstance(operand, Val) else None
        if let is None or let.name.partition(".")[0] != pack.name or let.value.ty != pack.ty:
            return ()
        found.append((lane, let))
    return tuple(found)
