"""The families of layouts that are proposed for one structure, each as a plan."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod

from layout_advise.layoutalgebra.derive.structure import Chosen, Field, Structure
from layout_advise.layoutalgebra.explore.cost_model import Walk
from layout_advise.layoutalgebra.explore.partitions import Suggested
from layout_advise.layoutalgebra.explore.placement import aligned, place_group
from layout_advise.layoutalgebra.explore.plans import LINE, AxisStep, Group, LayoutPlan, whole
from layout_advise.layoutalgebra.explore.relayout import tight_plan

HALF = 0.6
"""Part of the elements below which it is tried to store every other one apart."""
MANY = 64
"""How many times more elements than inner positions there must be for the elements to become the last dimension."""
MOST_GROWN, SMALL_PADDED = 2, 64 << 10
"""Lines of their own for elements that threads share lines for: at most so many times the bytes, or so many bytes."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """A plan with what the report calls it; ``block`` is the lane count of AoSoA.

    A ``rival`` is a candidate only where the model takes it for cheaper than all others. ``proposer`` as in
    :class:`Candidate`.
    """

    plan: LayoutPlan
    families: tuple[str, ...]
    block: int | None = None
    rival: bool = False
    proposer: str = "rules"


def proposals(structure: Structure, walk: Walk, lanes: tuple[int, ...]) -> Iterator[Proposal]:
    """Every family, most specific name first (the first of two equal maps is kept)."""
    everything, steps = tuple(range(len(structure.fields))), whole(structure)
    if structure.single:  # the objects as they are, one after another
        yield Proposal(LayoutPlan((Group(everything, steps, record=structure.element_bytes),)), ())
    if len(everything) > 1:
        yield Proposal(LayoutPlan(tuple(Group((n,), steps) for n in everything)), ("soa",))
    yield from _blocked(structure, lanes)
    yield Proposal(tight_plan(structure), ("split", "compact") if structure.cold else ("compact",))
    yield from _splits(structure)
    yield from _permuted(structure, walk)
    yield from _reordered(structure)
    if walk.shared:
        yield from own_lines(structure)
    if walk.chosen is not None:
        yield from _apart(structure, walk.chosen, lanes)
    elif walk.density <= HALF and structure.dims[0].count > 2:  # even and odd apart: A_n -> A_n/2 ⊗ A_2 -> A_2 ⊗ A_n/2
        halves = (AxisStep(0, "mod", 2), AxisStep(0, "div", 2), *steps[1:])
        families = ("permute", "pad") if structure.dims[0].count % 2 else ("permute",)
        yield Proposal(LayoutPlan((Group(everything, halves),)), families)


def _apart(structure: Structure, chosen: Chosen, lanes: tuple[int, ...]) -> Iterator[Proposal]:
    """The chosen elements apart from the others: as records, as a structure of arrays, in blocks for the longest vector."""
    fields, dim = tuple(range(len(structure.fields))), chosen.dim
    steps = tuple(AxisStep(s.dim, "div", chosen.block) if s.dim == dim else s for s in whole(structure))
    count = structure.dims[dim].count
    families = ("split", "compact", *(("pad",) if count % chosen.block else ()))
    yield Proposal(LayoutPlan((Group(fields, steps),), chosen), families)
    if len(fields) < 2:
        return
    yield Proposal(LayoutPlan(tuple(Group((n,), steps) for n in fields), chosen), ("soa", *families))
    block = max(lanes, default=0) // main_size(structure.fields)
    if block > 1 and -(-count // chosen.block) > block:
        size = block * chosen.block
        outer = tuple(replace(s, block=size) if s.dim == dim else s for s in steps)
        plan = LayoutPlan((Group(fields, outer, (AxisStep(dim, "mod", block, chosen.block),)),), chosen)
        yield Proposal(plan, ("aosoa", "split", "compact", *(("pad",) if count % size else ())), block)


def _permuted(structure: Structure, walk: Walk) -> Iterator[Proposal]:
    """The field axis before some of the dimensions, and the dimension of the innermost loops last (rule 4)."""
    everything, dims, steps = tuple(range(len(structure.fields))), len(structure.dims), whole(structure)
    several = len(everything) > 1
    for place in range(1, dims):
        if several:
            yield Proposal(LayoutPlan((Group(everything, steps[:place], steps[place:]),)), ("permute",))
    if 0 <= walk.fastest < dims - 1:
        order = (*(s for s in steps if s.dim != walk.fastest), steps[walk.fastest])
        yield Proposal(LayoutPlan((Group(everything, order),)), ("permute",))
        if several:
            yield Proposal(LayoutPlan(tuple(Group((n,), order) for n in everything)), ("soa", "permute"))
    inner = structure.count // structure.dims[0].count
    if several and dims > 1 and structure.dims[0].count >= MANY * inner:  # an array for each number of an element
        yield Proposal(LayoutPlan(tuple(Group((n,), (*steps[1:], steps[0])) for n in everything)), ("soa", "permute"))


def _blocked(structure: Structure, lanes: tuple[int, ...]) -> Iterator[Proposal]:
    """AoSoA (rule 5 once, one part to the right): blocks of as many elements as a vector holds fields."""
    fields, last = tuple(range(len(structure.fields))), len(structure.dims) - 1
    count = structure.dims[last].count
    if len(fields) < 2:
        return
    for block in dict.fromkeys(vector // main_size(structure.fields) for vector in lanes):
        if 1 < block < count:
            outer = (*whole(structure)[:last], AxisStep(last, "div", block))
            plan = LayoutPlan((Group(fields, outer, (AxisStep(last, "mod", block),)),))
            yield Proposal(plan, ("aosoa", "pad") if count % block else ("aosoa",), block)


def partitioned(structure: Structure, suggested: Sequence[Suggested], lanes: tuple[int, ...]) -> Iterator[Proposal]:
    """Each of the ``suggested`` partitions as records, and the first that has several of them also with its records in
    blocks, each as long as the longest vector holds fields of it: a block length for each cluster. Those that come with
    tiles in these."""
    steps, last = whole(structure), len(structure.dims) - 1
    count, vector, tiled = structure.dims[last].count, max(lanes, default=0), False
    for one in suggested:
        if one.tiles:
            yield in_tiles(structure, one)
            continue
        sizes = [len(group) for group in one.partition]
        plan = LayoutPlan(tuple(Group(group, steps) for group in one.partition))
        if len(sizes) > 1:
            yield Proposal(plan, ("split",) if max(sizes) > 1 else ("soa",), proposer=one.proposer)
        if tiled or len(sizes) < 2 or max(sizes) < 2:
            continue
        blocks = [vector // main_size([structure.fields[n] for n in group]) for group in one.partition]
        groups = tuple(
            Group(g, (*steps[:last], AxisStep(last, "div", b)), (AxisStep(last, "mod", b),))
            if len(g) > 1
            else Group(g, steps)
            for g, b in zip(one.partition, blocks, strict=True)
        )
        used = {b for g, b in zip(one.partition, blocks, strict=True) if len(g) > 1}
        if min(used) > 1 and max(used) < count:
            tiled = True
            names = ("aosoa", "split", *(("pad",) if any(count % b for b in used) else ()))
            yield Proposal(LayoutPlan(groups), names, max(used), proposer=one.proposer)


def in_tiles(structure: Structure, suggested: Suggested) -> Proposal:
    """The partition with each group in its tile. One that holds whole rows has as many of the last dimensions as it can."""
    steps, last, groups = whole(structure), len(structure.dims) - 1, list[Group]()
    for group, tile in zip(suggested.partition, suggested.tiles, strict=True):
        if len(group) == 1 or tile >= structure.count:
            groups += [Group((n,), steps) for n in group]
        elif tile < 2:
            groups.append(Group(group, steps))
        elif tile < structure.dims[last].count:
            groups.append(Group(group, (*steps[:last], AxisStep(last, "div", tile)), (AxisStep(last, "mod", tile),)))
        else:
            rows = (prod(d.count for d in structure.dims[place:]) for place in range(len(steps)))
            place = next(place for place, count in enumerate(rows) if count <= tile)
            groups.append(Group(group, steps[:place], steps[place:]))
    blocks = [step.block for group in groups for step in group.inner if step.part == "mod"]
    names = ["aosoa"] if blocks else []
    names += ["permute"] if any(step.part == "whole" for group in groups for step in group.inner) else []
    if len(groups) > 1:
        names.append("soa" if all(len(group.fields) == 1 for group in groups) else "split")
    names += ["pad"] if any(structure.dims[last].count % block for block in blocks) else []
    return Proposal(LayoutPlan(tuple(groups)), tuple(names), max(blocks, default=None), proposer=suggested.proposer)


def main_size(fields: Sequence[Field]) -> int:
    """The size of the fields that are accessed most."""
    weight: dict[int, int] = {}
    for field in fields:
        weight[field.bytes] = weight.get(field.bytes, 0) + field.reads + field.writes + 1
    return max(weight, key=lambda size: (weight[size], -size))


def _splits(structure: Structure) -> Iterator[Proposal]:
    """Rule 9: written fields apart from read ones, the most accessed apart from the others, pairs apart from each other."""
    fields, steps = structure.fields, whole(structure)
    numbers = range(len(fields))
    most = max(f.reads + f.writes for f in fields)
    written = [n for n in numbers if fields[n].writes]
    hot = [n for n in numbers if 2 * (fields[n].reads + fields[n].writes) > most]
    for chosen in (written, hot):
        rest = [n for n in numbers if n not in chosen]
        if chosen and rest:
            yield Proposal(LayoutPlan(tuple(Group(tuple(g), steps) for g in sorted((chosen, rest)))), ("split",))
    if pairs := complex_pairs(structure):
        yield Proposal(LayoutPlan(tuple(Group(pair, steps) for pair in pairs)), ("soa", "split"))


def complex_pairs(structure: Structure) -> tuple[tuple[int, int], ...]:
    """The fields in neighbouring pairs of one size, as the parts of several complex numbers; empty where they are not."""
    fields = structure.fields
    pairs = tuple((n, n + 1) for n in range(0, len(fields) - 1, 2))
    adjacent = all(
        fields[a].bytes == fields[b].bytes and fields[a].offset + fields[a].bytes == fields[b].offset for a, b in pairs
    )
    return pairs if len(fields) >= 4 and len(fields) % 2 == 0 and adjacent else ()


def _reordered(structure: Structure) -> Iterator[Proposal]:
    """Fields by falling size (no holes), and records padded to a divisor of the line (no element on two lines)."""
    tight = tight_plan(structure).groups[0]
    order = replace(tight, fields=tuple(sorted(tight.fields, key=lambda n: -structure.fields[n].bytes)))
    natural, tidy = (place_group(structure, group, 0)[1] // structure.count for group in (tight, order))
    if tidy < natural:
        yield Proposal(LayoutPlan((order,)), ("reorder",))
    if natural % LINE and LINE % natural:
        record = next(r for r in (8, 16, 32, 64, aligned(natural, LINE)) if r >= natural)
        if record <= natural + natural // 2:
            yield Proposal(LayoutPlan((replace(tight, record=record),)), ("pad",))


def can_pad(structure: Structure) -> bool:
    """True if some elements, or rows of them, could get lines of their own."""
    return structure.inexact is None and structure.count > 1 and any(own_lines(structure))


def own_lines(structure: Structure) -> Iterator[Proposal]:
    """Lines of their own (rule 8) for the elements, or for the rows of them, that threads have each for itself; where that
    takes little memory. Whole rows first."""
    everything, steps = tuple(range(len(structure.fields))), whole(structure)
    for depth in range(1, len(steps) + 1):
        if not structure.placed or (depth < len(steps) and len(everything) > 1):
            continue  # rows of several fields would have these apart
        plan = LayoutPlan((Group(everything, steps[:depth], steps[depth:], LINE),))
        rows = structure.count // prod(d.count for d in structure.dims[depth:])
        grown = rows * aligned(structure.dims[depth - 1].stride, LINE)
        if structure.dims[depth - 1].stride % LINE and grown <= max(MOST_GROWN * structure.bytes, SMALL_PADDED):
            yield Proposal(plan, ("pad",))
