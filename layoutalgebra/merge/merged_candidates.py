"""Candidates that merge arrays which are used with one index: which ones together, in which groups, at what cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from layout_advise.layoutalgebra.derive.structure import Candidate, Relayout, Structure
from layout_advise.layoutalgebra.explore.cost_model import STREAM_CYCLES, STREAMS, Walk, cost_of
from layout_advise.layoutalgebra.explore.explore import promise
from layout_advise.layoutalgebra.explore.families import MOST_GROWN, main_size
from layout_advise.layoutalgebra.explore.plans import AxisStep, Group, LayoutPlan, whole
from layout_advise.layoutalgebra.merge.records import MERGE, Parts, can_be_merged, merge, thought_of

MOST_MERGED = 3
"""At most so many candidates merge arrays."""
MANY = 4
"""So many arrays, or more, are also merged in several groups."""


@dataclass(frozen=True, slots=True)
class SharedIndex:
    """Structures of which the hotspot accesses elements of one index together: by id, in which loops (by any number); in the
    order in which the code comes to them."""

    loops: Mapping[str, frozenset[int]]


def with_merged(
    found: Sequence[Candidate], merged: Sequence[Candidate], structures: Sequence[Structure], budget: int
) -> tuple[Candidate, ...]:
    """``found`` with the best of ``merged``, and the others of these as far as ``budget`` leaves places, each before what
    promises less; numbered anew."""
    left = promise(structures)
    together = list(found)
    for candidate in merged[: max(1, budget - len(found))]:
        place = next((k for k, one in enumerate(together) if left(one) > left(candidate)), len(together))
        together.insert(place, candidate)
    return tuple(replace(c, id=f"c{number}") for number, c in enumerate(together, 1))


def merged_candidates(
    structures: Sequence[Structure], shared: Sequence[SharedIndex], walks: Mapping[str, Walk], lanes: Sequence[int]
) -> list[Candidate]:
    """At most ``MOST_MERGED`` candidates that merge ``structures`` with a ``shared`` index, the cheapest first; one of them
    stores plain records, not blocks of them."""
    known = {structure.id: structure for structure in structures}
    each: list[list[Candidate]] = []
    for one in shared:
        parts = tuple(known[name] for name in one.loops if name in known and can_be_merged(known[name]))
        found: dict[tuple[Relayout, ...], Candidate] = {}
        for groups in groupings(parts, one.loops):
            for candidate in _candidates(groups, walks, lanes):
                found.setdefault(candidate.relayouts, candidate)
        if found:
            each.append(sorted(found.values(), key=_rank))
    joint = [_joined([found[0] for found in each])] if len(each) > 1 else []
    ranked = sorted([*joint, *(c for found in each for c in found)], key=_rank)
    kept = ranked[:MOST_MERGED]
    if ranked and all(c.block is not None for c in kept):
        kept[-1] = next(c for c in ranked if c.block is None)
    return kept


def groupings(parts: Parts, loops: Mapping[str, frozenset[int]]) -> Iterator[tuple[Parts, ...]]:
    """Ways to divide ``parts`` into records of two arrays and more: all in one; by which loops use them; of many also in
    groups of one size. Arrays that fit no others stay as they are."""
    for alike in _of_one_shape(parts):
        yield (alike,)
        by_loops: dict[frozenset[int], list[Structure]] = {}
        for one in alike:
            by_loops.setdefault(loops[one.id], []).append(one)
        if len(by_loops) > 1 and (groups := tuple(tuple(g) for g in by_loops.values() if len(g) > 1)):
            yield groups
        many = len(alike)
        if many >= MANY:
            sizes = [size for size in range(2, many) if many % size == 0] or [-(-many // 2)]
            for size in sizes:
                cut = (alike[k : k + size] for k in range(0, many, size))
                yield tuple(group for group in cut if len(group) > 1)


def _of_one_shape(parts: Parts) -> Iterator[Parts]:
    """Those of ``parts`` that can be one array of records: with the same inner dimensions, and not much fewer elements than
    the longest of them, beyond whose ends records have empty places."""
    classes: list[list[Structure]] = []
    for one in sorted(parts, key=lambda one: -one.count):
        fitting = (c for c in classes if _inner(c[0]) == _inner(one) and c[0].count <= MOST_GROWN * one.count)
        found = next(fitting, None)
        if found is None:
            classes.append(found := [])
        found.append(one)
    for alike in classes:
        if len(alike) > 1:
            yield tuple(one for one in parts if one in alike)


def _inner(structure: Structure) -> tuple[int, ...]:
    return tuple(dim.count for dim in structure.dims[1:])


def _candidates(groups: Sequence[Parts], walks: Mapping[str, Walk], lanes: Sequence[int]) -> Iterator[Candidate]:
    """The groups as arrays of records; where it is one, also in blocks for the longest vector."""
    yield _candidate(groups, [None] * len(groups), walks, lanes, None)
    if len(groups) == 1:
        one = thought_of(groups[0])
        block, last = max(lanes, default=0) // main_size(one.fields), len(one.dims) - 1
        if 1 < block < one.dims[last].count:
            outer = (*whole(one)[:last], AxisStep(last, "div", block))
            plan = LayoutPlan((Group(tuple(range(len(one.fields))), outer, (AxisStep(last, "mod", block),)),))
            yield _candidate(groups, [plan], walks, lanes, block)


def _candidate(
    groups: Sequence[Parts],
    plans: Sequence[LayoutPlan | None],
    walks: Mapping[str, Walk],
    lanes: Sequence[int],
    block: int | None,
) -> Candidate:
    layouts = [merge(parts, plan) for parts, plan in zip(groups, plans, strict=True)]
    every = tuple(layout for group in layouts for layout in group)
    rules = dict.fromkeys(rule for layout in every for rule in layout.rules)
    families = (MERGE, *(("aosoa",) if block is not None else ()))
    if block is not None and every[0].merged is not None and every[0].merged.structure.dims[-1].count % block:
        families = (*families, "pad")
    cold = any(layout.structure.cold for layout in every)
    cost = _cost(layouts, walks, max(lanes, default=16))
    return Candidate("", every, families, (MERGE, *rules), block, False, cold, cost)


def _cost(layouts: Sequence[tuple[Relayout, ...]], walks: Mapping[str, Walk], vector: int) -> dict[str, float]:
    """As of one structure, of all together: each array is a stream of its own before."""
    before: dict[str, float] = {}
    after: dict[str, float] = {}
    for group in layouts:
        own = [walks.get(r.structure.id, Walk(len(r.structure.dims) - 1)) for r in group]
        walk = Walk(own[0].fastest, any(w.gathered for w in own), max(w.density for w in own))
        stored = group[0].merged
        assert stored is not None
        for total, costs in (
            (before, [cost_of(r.structure, w, vector) for r, w in zip(group, own, strict=True)]),
            (after, [cost_of(stored, walk, vector)]),
        ):
            for cost in costs:
                for name, value in cost.items():
                    total[name] = total.get(name, 0.0) + value
    elements = max(r.structure.count for group in layouts for r in group)
    for total in (before, after):
        total["cycles"] += elements / 8 * max(0.0, total["streams"] - STREAMS) * STREAM_CYCLES
    return {**after, "relative": after["cycles"] / max(before["cycles"], 1e-9)}


def _joined(picks: Sequence[Candidate]) -> Candidate:
    """Several candidates, of different arrays, as one."""
    blocks = {c.block for c in picks}
    return Candidate(
        "",
        tuple(layout for c in picks for layout in c.relayouts),
        tuple(dict.fromkeys(f for c in picks for f in c.families)),
        tuple(dict.fromkeys(step for c in picks for step in c.derivation)),
        blocks.pop() if len(blocks) == 1 else None,
        False,
        any(c.keeps_cold for c in picks),
        {"relative": sum(c.cost["relative"] for c in picks) / len(picks)},
    )


def _rank(candidate: Candidate) -> tuple[object, ...]:
    """Cheapest first; of equal ones the most arrays together, plain records before blocks."""
    together = len(candidate.relayouts) / max(len(candidate.stored), 1)
    return round(candidate.cost["relative"], 6), candidate.block or 0, -together
