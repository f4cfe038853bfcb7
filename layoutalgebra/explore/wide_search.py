"""The wide search: hundreds or thousands of layouts of one structure, ranked by the cost model of :mod:`cost_model`.

The road measures a handful of candidates (:func:`layout_advise.layoutalgebra.explore.explore`); here is the space behind
them, for people and for programs that want to look further. A layout is a partition of the fields into buffers and one
arrangement for all of them: an order of the dimensions, a place for the field axis among them, and at most one dimension
split for vectors (rule 5 once, its remainder rightmost). All partitions are tried up to :data:`EXHAUSTIVE` fields; beyond,
the neighbours of the best ones found, until the budget is used up. Costs of buffers add up, so each is costed once for each
arrangement.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from layout_advise.errors import AlgebraError
from layout_advise.layoutalgebra.derive.structure import Buffer, Candidate, Relayout, Structure
from layout_advise.layoutalgebra.explore.arrangements import Arrangement, arrangements
from layout_advise.layoutalgebra.explore.cost_model import (
    LINE_CYCLES,
    LOAD_CYCLES,
    STREAM_CYCLES,
    STREAMS,
    Walk,
    cost_of,
    strides_and_places,
)
from layout_advise.layoutalgebra.explore.families import Proposal
from layout_advise.layoutalgebra.explore.partitions import Partition, all_partitions, first_partitions, neighbours
from layout_advise.layoutalgebra.explore.patterns import Shape
from layout_advise.layoutalgebra.explore.placement import place_group
from layout_advise.layoutalgebra.explore.plans import LINE, Group, LayoutPlan
from layout_advise.layoutalgebra.explore.relayout import drops_bytes, map_key, relayout
from layout_advise.layoutalgebra.explore.traffic import lines_touched

EXHAUSTIVE = 5
"""Up to this many fields every partition is tried."""
NARROW = 8
"""Arrangements kept for further partitions where not all can be tried."""


@dataclass(frozen=True, slots=True)
class _Found:
    """One point of the space; compared by cost, then by what is simplest."""

    cycles: float
    partition: Partition
    arrangement: int

    @property
    def rank(self) -> tuple[float, int, int, Partition]:
        return self.cycles, self.arrangement, len(self.partition), self.partition


def search(
    structure: Structure,
    *,
    walk: Walk | None = None,
    lanes: Sequence[int] = (16, 32),
    patterns: Sequence[str] = (),
    budget: int = 1000,
) -> tuple[Candidate, ...]:
    """At most ``budget`` distinct candidates, the cheapest under the model first; the same ones every time.

    ``lanes`` are vector lengths in bytes. ``patterns`` (``"* ⊗ A_8"``, ``"* ⊗ A ⊗ S_2"``, see :class:`Shape`) keep the
    layouts of which every buffer matches one of them. ``walk.chosen`` is not looked at. Raises :class:`AlgebraError` for an
    inexact structure, one without fields, a budget below 1, or where no layout matches the patterns.
    """
    space = _space(structure, walk, lanes, patterns, budget)
    dropped = drops_bytes(structure)
    before = cost_of(structure, Walk(space.walk.fastest, space.walk.gathered), space.vector)["cycles"]
    found = []
    for number, (proposal, layout, cycles) in enumerate(islice(space.layouts(budget), budget), 1):
        cost = {"cycles": cycles, "relative": cycles / max(before, 1e-9)}
        families = (*proposal.families, *(["compact"] if dropped else [])) or ("reorder",)
        found.append(Candidate(f"w{number}", (layout,), families, layout.rules, proposal.block, False, dropped, cost))
    if not found:
        raise AlgebraError("no layout matches", " or ".join(patterns), "try a pattern with fewer factors")
    return tuple(found)


def best_by_pattern(structure: Structure, walk: Walk, lanes: Sequence[int], pattern: str, budget: int) -> list[Proposal]:
    """The plans of at most ``budget`` distinct layouts that match ``pattern``, the cheapest under the model first."""
    space = _space(structure, walk, lanes, (pattern,), budget)
    return [proposal for proposal, _, _ in islice(space.layouts(budget), budget)]


def _space(structure: Structure, walk: Walk | None, lanes: Sequence[int], patterns: Sequence[str], budget: int) -> _Space:
    """The space of layouts to search. Raises :class:`AlgebraError` for a structure that cannot be searched."""
    if structure.inexact or not structure.fields:
        why = structure.inexact or "it has no accessed field"
        raise AlgebraError(f"no layouts of {structure.name} can be searched", why, "search an exact structure")
    if budget < 1:
        raise AlgebraError(f"a budget of {budget} candidates", "it must be at least 1")
    shapes = tuple(map(Shape.parse, patterns))
    return _Space(structure, walk or Walk(len(structure.dims) - 1), tuple(sorted(set(lanes))), shapes)


@dataclass(slots=True)
class _BufferCost:
    """One buffer: its group of fields, and its part of the cost."""

    group: Group
    lines: int
    streams: int
    loads: float


class _Space:
    """The layouts of one structure, with what has been costed so far."""

    def __init__(self, structure: Structure, walk: Walk, lanes: tuple[int, ...], shapes: tuple[Shape, ...]) -> None:
        self.structure, self.walk, self.shapes = structure, walk, shapes
        self.vector = max(lanes, default=16)
        self.chunks = list(dict.fromkeys(s.members for s in shapes if s.members > 1))
        blocks = [s.lanes for s in shapes if s.lanes > 1]
        self.arrangements = list(arrangements(structure, lanes, blocks, self.chunks))
        self.parts: dict[tuple[tuple[int, ...], int], _BufferCost | None] = {}
        self.seen: dict[tuple[Partition, int], _Found | None] = {}

    def explored(self, budget: int) -> list[_Found]:
        """Everything that was costed and matches, cheapest first."""
        count = len(self.structure.fields)
        every = range(len(self.arrangements))
        if count <= EXHAUSTIVE:
            for partition in all_partitions(count):
                for arrangement in every:
                    self.cost(partition, arrangement)
            return self.ranked()
        for partition in first_partitions(self.structure.fields, self.chunks)[: 3 + len(self.chunks)]:
            for arrangement in every:
                self.cost(partition, arrangement)
        kept = list(dict.fromkeys(f.arrangement for f in self.ranked()))[:NARROW]
        for partition in first_partitions(self.structure.fields, self.chunks):
            for arrangement in kept:
                self.cost(partition, arrangement)
        self.widen(kept, budget + budget // 4)
        return self.ranked()

    def widen(self, kept: list[int], wanted: int) -> None:
        """Best first: the neighbours of the cheapest partition not yet widened, until there are ``wanted`` layouts."""
        queue = [f.rank for f in self.ranked()]
        heapq.heapify(queue)
        widened: set[Partition] = set()
        number = len(queue)
        while queue and number < wanted:
            partition = heapq.heappop(queue)[3]
            if partition in widened:
                continue
            widened.add(partition)
            for other in neighbours(partition):
                for arrangement in kept:
                    if (other, arrangement) not in self.seen and (found := self.cost(other, arrangement)):
                        heapq.heappush(queue, found.rank)
                        number += 1

    def ranked(self) -> list[_Found]:
        return sorted((f for f in self.seen.values() if f), key=lambda f: f.rank)

    def cost(self, partition: Partition, arrangement: int) -> _Found | None:
        """The layout with its cost, or ``None`` where it matches no pattern."""
        if (partition, arrangement) not in self.seen:
            parts = [self.part(group, arrangement) for group in partition]
            costs = None if any(p is None for p in parts) else [p for p in parts if p is not None]
            found = _Found(self.cycles(costs), partition, arrangement) if costs else None
            self.seen[partition, arrangement] = found
        return self.seen[partition, arrangement]

    def part(self, fields: tuple[int, ...], arrangement: int) -> _BufferCost | None:
        """One buffer with its cost; ``None`` where no pattern matches it."""
        key = fields, arrangement
        if key not in self.parts:
            self.parts[key] = None
            chosen = self.arrangements[arrangement].group(self.structure, fields)
            if not self.shapes or any(shape.matches(chosen, self.structure) for shape in self.shapes):
                self.parts[key] = self.costed(chosen)
        return self.parts[key]

    def costed(self, group: Group) -> _BufferCost:
        """The buffer of ``group`` with its part of :mod:`explore`'s model."""
        structure, count = self.structure, self.structure.count
        maps, size = place_group(structure, group, 0)
        sizes = [structure.fields[m.field].bytes for m in maps]
        strides, places = strides_and_places(structure, maps, self.walk.fastest)
        if size == count * sum(sizes):  # nothing in it is unused
            lines = -(-size // LINE)
        else:
            alone = replace(structure, fields=tuple(structure.fields[m.field] for m in maps))
            renumbered = tuple(replace(m, field=n) for n, m in enumerate(maps))
            lines = lines_touched(Relayout(alone, renumbered, (Buffer("", size),), (), ""))
        unit = [step == own and not self.walk.gathered for step, own in zip(strides, sizes, strict=True)]
        loads = sum(count * (own / self.vector if dense else 1.0) for own, dense in zip(sizes, unit, strict=True))
        return _BufferCost(group, lines, len(places), loads)

    def cycles(self, parts: Sequence[_BufferCost]) -> float:
        """The model of :mod:`explore`, from the sums over the buffers."""
        lines, streams = sum(p.lines for p in parts), sum(p.streams for p in parts)
        loads, count = sum(p.loads for p in parts), self.structure.count
        if self.walk.gathered:
            lines = max(lines, count * streams)
        extra = count / 8 * max(0, streams - STREAMS)
        return lines * LINE_CYCLES + loads * LOAD_CYCLES + extra * STREAM_CYCLES

    def layouts(self, budget: int) -> Iterator[tuple[Proposal, Relayout, float]]:
        """Plans with their layouts and cycles, cheapest first, one for each index map."""
        everything = tuple(range(len(self.structure.fields)))
        same = relayout(self.structure, LayoutPlan((self.arrangements[0].group(self.structure, everything),)))
        seen: set[object] = set() if drops_bytes(self.structure) else {map_key(same)}  # as it is is no candidate
        for one in self.explored(budget):
            parts = [self.part(group, one.arrangement) for group in one.partition]
            plan = LayoutPlan(tuple(part.group for part in parts if part is not None))
            layout = relayout(self.structure, plan, checked=False)
            if (key := map_key(layout)) not in seen:
                seen.add(key)
                yield self.named(plan, self.arrangements[one.arrangement]), layout, one.cycles

    def named(self, plan: LayoutPlan, arrangement: Arrangement) -> Proposal:
        """The plan with the report's names for what it does."""
        block = arrangement.lanes.block if arrangement.lanes else None
        order = [step.dim for step in arrangement.order]
        sizes = [len(group.fields) for group in plan.groups]
        split = [self.structure.dims[step.dim].count for step in arrangement.order if step.part == "div"]
        moved = max(sizes) > 1 and arrangement.place < len(order) and not block
        names = {
            "soa": max(sizes) == 1 and len(sizes) > 1,
            "split": len(sizes) > 1 and max(sizes) > 1,
            "aosoa": block is not None,
            "complex": any(group.together > 1 for group in plan.groups),
            "permute": order != sorted(order) or moved,
            "pad": block is not None and any(count % block for count in split),
        }
        return Proposal(plan, tuple(name for name, used in names.items() if used), block)
