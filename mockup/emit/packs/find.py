"""Finds packed instructions that become one vector statement each, where their lanes stay neighbours.

Compilers put the operations of one element side by side: four coordinates, the two parts of a complex number, what one trip
does for several elements. Lifted lane by lane they are single operations; gcc -O2 does not find that again (``kmeans``: the
unchanged layout took 15 % longer than the original), and gcc -O3 another way.

A pack is one operation, or one load or store, of all lanes. Its members stand together afterwards, the lanes in order.
Packed operations that are connected are written so all of them or not at all: to take vectors apart for one that no
statement is known for, and to put them together again, costs more than they gain.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import count, groupby

from layout_advise.mockup.emit.packs.fill import fill_shared_lanes
from layout_advise.mockup.emit.packs.pack import ALTERNATING, Member, Pack, Packs, Plain
from layout_advise.mockup.ir.effects import BITS, Ty
from layout_advise.mockup.ir.lifted import (
    Imm,
    Item,
    Let,
    LetLinear,
    Lifted,
    LiftedLoop,
    Load,
    Store,
    Val,
    Var,
    everything,
    first_free_uid,
)
from layout_advise.mockup.ir.loop_body import first_free_number, operands

OPERATIONS = frozenset(
    ("fadd", "fsub", "fmul", "fdiv", "fneg", "fabs", "fsqrt", "fmin", "fmax", "fma", "fmaddsub", "fmsubadd")
)
PAIR = 2
FLOATS: tuple[Ty, ...] = ("f32", "f64")


def packed(lifted: Lifted, vector_bytes: int) -> tuple[Lifted, Packs]:
    """``lifted`` with the members of each pack together, and the packs; vectors of up to ``vector_bytes``."""
    finder = _Finder(vector_bytes, lifted)
    body = finder.body(lifted.body)
    at = {p.members[0].uid: p for p in finder.packs}
    return replace(lifted, body=body), Packs(at, tuple(_vectors(finder.packs)), not finder.left)


def nothing_packed(lifted: Lifted) -> bool:
    """Returns whether the original has nothing side by side: no packed instruction, nor iterations that were."""
    lanes: set[tuple[str, int]] = set()
    for item in everything(lifted.body):
        if isinstance(item, Load | Store) and item.lanes:
            return False
        if isinstance(item, Let) and item.origin.pack is not None:
            if (item.name, item.origin.pack) in lanes:
                return False
            lanes.add((item.name, item.origin.pack))
    return True


def _uses(lifted: Lifted) -> frozenset[int]:
    """Numbers of the values and variables that anything reads."""
    outs = [out.operand for out in lifted.live_outs]
    read = [operand for item in everything(lifted.body) for operand in operands(item)]
    return frozenset(a.number for a in (*outs, *read) if not isinstance(a, Imm))


def _vectors(packs: Sequence[Pack]) -> Iterator[tuple[Var, ...]]:
    """Variables that a pack reads side by side: of each the first such company."""
    taken: set[Var] = set()
    for pack in packs:
        for column in pack.columns():
            variables = tuple(a for a in column if isinstance(a, Var))
            if len(variables) == len(column) == len(set(column)) and not taken & set(variables):
                taken |= set(variables)
                yield variables


class _Finder:
    def __init__(self, vector_bytes: int, lifted: Lifted) -> None:
        self.sizes = {n for n in (16, 32) if n <= vector_bytes}
        self.used = _uses(lifted)
        self.first_fresh = first_free_number(lifted)
        self.fresh = zip(count(self.first_fresh), count(first_free_uid(lifted)), strict=False)
        self.packs: list[Pack] = []
        self.left = False
        """Whether lanes of a packed instruction stay single where iterations are to be put side by side."""

    def body(self, items: Sequence[Item]) -> tuple[Item, ...]:
        done: list[Item] = []
        for plain, run in groupby(items, key=lambda item: isinstance(item, Plain)):
            if plain:
                done += self.segment([item for item in run if isinstance(item, Plain)])
            else:
                done += [replace(i, body=self.body(i.body)) if isinstance(i, LiftedLoop) else i for i in run]
        return tuple(done)

    def segment(self, items: Sequence[Plain]) -> list[Plain]:
        """A stretch of statements without control flow."""
        groups = self._groups(items)
        if _is_rerolled(items):
            self.left |= bool(groups)
            groups = []
        whole = fill_shared_lanes(items, groups, self.fresh)
        if whole is not None:
            items, groups = whole, self._groups(whole)
        found = self._connected(items, groups)
        while True:
            order = _ordered(items, found)
            if isinstance(order, list):
                self.packs += found
                return order
            found = self._connected(items, [pack for pack in found if pack is not order])

    def _groups(self, items: Sequence[Plain]) -> list[Pack]:
        by_key: dict[tuple[object, ...], list[Member]] = {}
        for item in items:
            if isinstance(item, LetLinear) or (isinstance(item, Let) and not self._counts(item)):
                continue
            kind = _stem(item) if isinstance(item, Let) else type(item).__name__
            kind = "sum" if kind in ("fadd", "fsub") else kind
            # two floats may be moved by what is no packed instruction: movq
            unit = ("moved", item.origin.pc) if item.origin.pack is None else item.origin.pack
            by_key.setdefault((unit, kind, _type(item)), []).append(item)
        return [pack for members in by_key.values() if (pack := self._pack(members)) is not None]

    def _counts(self, item: Let) -> bool:
        return item.origin.pack is not None and self._used(item.value.number)

    def _used(self, number: int) -> bool:
        """Returns whether anything reads it: lanes that were filled in are read."""
        return number in self.used or number >= self.first_fresh

    def _pack(self, members: Sequence[Member]) -> Pack | None:
        first, ty = members[0], _type(members[0])
        moved = first.origin.pack is None
        if ty not in FLOATS or (first.origin.width not in self.sizes and not moved) or (moved and len(members) != PAIR):
            return None
        return (
            _operation(members, ty, first.origin.width * 8 // BITS[ty]) if isinstance(first, Let) else _access(members, ty)
        )

    def _connected(self, items: Sequence[Plain], groups: list[Pack]) -> list[Pack]:
        """Those of the packs that are not connected with packed operations that are none."""
        lets = {i.value.number: i for i in items if isinstance(i, Let) and i.origin.pack is not None}
        while True:
            inside = {m.uid for pack in groups for m in pack.members}
            alone = {n for n, let in lets.items() if let.uid not in inside and self._used(n)}
            read = {a.number for n in alone for a in lets[n].args if isinstance(a, Val)}
            kept = [pack for pack in groups if isinstance(pack.members[0], Load | Store) or not _touches(pack, alone, read)]
            if len(kept) == len(groups):
                return _serving(groups)
            groups = kept


def _is_rerolled(items: Sequence[Plain]) -> bool:
    """Returns whether a statement stands for several elements that were side by side: the compiler may put them so again."""
    return any(item.lanes for item in items if isinstance(item, Load | Store))


def _serving(packs: Sequence[Pack]) -> list[Pack]:
    """Without pairs of floats that are moved for no operation on both."""
    operations = [pack for pack in packs if isinstance(pack.members[0], Let)]
    read = {column for pack in operations for column in pack.columns()}
    made = {tuple(m.value for m in pack.members if isinstance(m, Let)) for pack in operations}
    kept = []
    for pack in packs:
        values = tuple(m.value for m in pack.members if isinstance(m, Load))
        if pack.lanes != PAIR or pack.ty != "f32" or pack in operations or values in read or set(pack.columns()) & made:
            kept.append(pack)
    return kept


def _operation(members: Sequence[Member], ty: Ty, most: int) -> Pack | None:
    lets = sorted((m for m in members if isinstance(m, Let)), key=lambda m: m.origin.lane)
    names, numbers = [_stem(m) for m in lets], tuple(m.origin.lane for m in lets)
    if len(set(numbers)) < len(numbers) or numbers[-1] >= most:
        return None
    name = names[0]
    if len(set(names)) > 1:
        name = "addsub"
        if any((n == "fadd") != bool(lane % 2) for n, lane in zip(names, numbers, strict=True)):
            return None
    lanes = most
    while lanes > PAIR and numbers[-1] < lanes // 2:  # the upper half is nobody's
        lanes //= 2
    known = name in OPERATIONS or name == "addsub"
    return Pack(name, ty, tuple(lets), numbers, lanes) if known and (len(lets) == lanes or name not in ALTERNATING) else None


def _access(members: Sequence[Member], ty: Ty) -> Pack | None:
    accesses = sorted((m for m in members if isinstance(m, Load | Store)), key=lambda m: m.part)
    first, size, lanes = accesses[0], BITS[ty] // 8, len(accesses)
    lined = all(
        m.address.terms == first.address.terms
        and (m.address.const - first.address.const) % (1 << 64) == m.part - first.part == k * size
        and (m.operand, m.turn) == (first.operand, first.turn)
        for k, m in enumerate(accesses)
    )
    whole = first.origin.pack is None or lanes * size == first.origin.width
    if lanes < PAIR or not whole or not lined:
        return None
    return Pack(type(first).__name__.lower(), ty, tuple(accesses), tuple(range(lanes)), lanes)


def _touches(pack: Pack, alone: set[int], read: set[int]) -> bool:
    defined = {m.value.number for m in pack.members if isinstance(m, Let)}
    needed = {a.number for column in pack.columns() for a in column if isinstance(a, Val)}
    return bool(defined & read or needed & alone)


def _stem(item: Let) -> str:
    """``fmaddsub`` of ``fmaddsub.4.1``."""
    return item.name.partition(".")[0]


def _type(item: Member) -> Ty:
    return item.ty if isinstance(item, Store) else item.value.ty


def _ordered(items: Sequence[Plain], packs: Sequence[Pack]) -> list[Plain] | Pack:
    """The statements with the packs' members together, otherwise as early as they were; or a pack that stands in the way:
    one of its members needs another one done first, or what comes between."""
    node = {m.uid: len(items) + k for k, pack in enumerate(packs) for m in pack.members}
    of = [node.get(item.uid, k) for k, item in enumerate(items)]
    content: dict[int, list[Plain]] = {}
    for k, item in enumerate(items):
        content.setdefault(of[k], []).append(item)
    for k, pack in enumerate(packs):
        content[len(items) + k] = list(pack.members)
    after = _followers(items, of)
    waiting = dict.fromkeys(content, 0)
    for followers in after.values():
        for one in followers:
            waiting[one] += 1
    # a pack is done where its last member stood: what its first ones feed waits for it anyway
    rank = {n: k for k, n in enumerate(of)}
    ready = [(rank[n], n) for n in content if not waiting[n]]
    heapq.heapify(ready)
    result: list[Plain] = []
    done = set()
    while ready:
        _, n = heapq.heappop(ready)
        result += content[n]
        done.add(n)
        for one in after.get(n, ()):
            waiting[one] -= 1
            if not waiting[one]:
                heapq.heappush(ready, (rank[one], one))
    left = [n for n in content if n not in done and n >= len(items)]
    return packs[min(left) - len(items)] if left else result


def _followers(items: Sequence[Plain], of: Sequence[int]) -> dict[int, set[int]]:
    """Returns what has to come after what: values after their operands, memory in its order but for loads among
    themselves."""
    after: dict[int, set[int]] = {}
    defined = {i.value.number: of[k] for k, i in enumerate(items) if not isinstance(i, Store)}
    last_store: int | None = None
    loads: list[int] = []

    def edge(first: int, second: int) -> None:
        if first != second:
            after.setdefault(first, set()).add(second)

    for k, item in enumerate(items):
        for operand in operands(item):
            if isinstance(operand, Val) and operand.number in defined:
                edge(defined[operand.number], of[k])
        if isinstance(item, Load):
            if last_store is not None:
                edge(last_store, of[k])
            loads.append(of[k])
        elif isinstance(item, Store):
            if last_store is not None:
                edge(last_store, of[k])
            for load in loads:
                edge(load, of[k])
            last_store, loads = of[k], []
    return after
