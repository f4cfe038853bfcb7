"""Arrays that are used with one index as one array of records: the rule from several arrays to a structure, right to left.

``(A_n ⊗ a) ⊕ (A_n ⊗ b)``, each in memory of its own, becomes ``A_n ⊗ S{a, b}``. No rewriting of one term does that, so it is
taken the other way round: a structure is thought of that has the fields of all the arrays; its structure of arrays (by the
rules) is what the program has, and its own layout, or another one of it, is the candidate.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from layout_advise.layoutalgebra.derive.structure import Candidate, Dim, Field, FieldMap, Part, Relayout, Structure
from layout_advise.layoutalgebra.explore.cost_model import STREAM_CYCLES, STREAMS, Walk, cost_of
from layout_advise.layoutalgebra.explore.families import MOST_GROWN, main_size
from layout_advise.layoutalgebra.explore.placement import aligned, alignment
from layout_advise.layoutalgebra.explore.plans import AxisStep, Group, LayoutPlan, whole
from layout_advise.layoutalgebra.explore.relayout import relayout, tight_plan

MERGE = "merge"
"""Family, and step of the derivation: arrays used with one index put into one array of records."""
MOST_MERGED = 3
"""At most so many candidates merge arrays."""
FEW = 3
"""More arrays than these are also merged in several groups."""

Parts = tuple[Structure, ...]


@dataclass(frozen=True, slots=True)
class SharedIndex:
    """Structures of which the hotspot accesses elements of one index together: by id, in which loops (by any number); in the
    order in which the code comes to them."""

    loops: Mapping[str, frozenset[int]]


def can_be_merged(structure: Structure) -> bool:
    """True if its elements can go into records with those of others."""
    return structure.inexact is None and structure.via is None and structure.count > 1 and bool(structure.fields)


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
        if many > FEW:
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


def thought_of(parts: Sequence[Structure]) -> Structure:
    """The structure that has the accessed fields of all ``parts``, the largest first, and as many elements as the longest of
    them; its fields are named after the arrays. It lies nowhere."""
    named = dict(zip(fields_of(parts), _names(parts), strict=True))
    fields: list[Field] = []
    end = 0
    for part, number in fields_of(parts):
        old = parts[part].fields[number]
        start = aligned(end, alignment(old))
        fields.append(replace(old, name=named[part, number], offset=start))
        end = start + old.bytes
    record = aligned(end, max(alignment(field) for field in fields))
    dims: list[Dim] = []
    stride = record
    for k in range(len(parts[0].dims) - 1, -1, -1):
        count = max(part.dims[k].count for part in parts)
        dims.insert(0, Dim(count, stride))
        stride *= count
    names = list(dict.fromkeys(part.name for part in parts))
    name = ", ".join(names) if len(names) <= FEW else f"{names[0]}, {names[1]} and {len(names) - 2} more"
    return Structure("+".join(part.id for part in parts), name, 0, stride, tuple(dims), tuple(fields), kind=parts[0].kind)


def fields_of(parts: Sequence[Structure]) -> list[tuple[int, int]]:
    """The fields of the structure thought of, in its order, each by the numbers of its part and of the field there."""
    every = [(k, number) for k, part in enumerate(parts) for number in range(len(part.fields))]
    return sorted(every, key=lambda one: -alignment(parts[one[0]].fields[one[1]]))


def _names(parts: Sequence[Structure]) -> Iterator[str]:
    """By the array, and by the field where it has several; each once."""
    taken: dict[str, int] = {}
    for part, number in fields_of(parts):
        structure = parts[part]
        name = structure.name if len(structure.fields) == 1 else f"{structure.name}.{structure.fields[number].name}"
        taken[name] = taken.get(name, 0) + 1
        yield name if taken[name] == 1 else f"{name} ({taken[name]})"


def merge(parts: Parts, plan: LayoutPlan | None = None) -> tuple[Relayout, ...]:
    """The layouts of ``parts`` as records that they share, stored as ``plan`` says of the structure thought of; without one
    as an array of these records. The rules check the structure of arrays that this starts from, and what it is stored as."""
    one = thought_of(parts)
    apart = relayout(one, LayoutPlan(tuple(Group((n,), whole(one)) for n in range(len(one.fields)))))
    stored = relayout(one, plan if plan is not None else tight_plan(one))
    rules = (*reversed(apart.rules), *stored.rules)
    stored = replace(stored, rules=rules, buffers=tuple(replace(b, name=_buffer_name(one)) for b in stored.buffers))
    places = dict(zip(fields_of(parts), stored.fields, strict=True))
    layouts = []
    for k, part in enumerate(parts):
        maps = [replace(places[k, number], field=number) for number in range(len(part.fields))]
        shown = tuple(_shown(part, one, m, places[k, m.field], stored) for m in maps)
        layouts.append(Relayout(part, tuple(maps), stored.buffers, shown, stored.term, None, rules, stored))
    return tuple(layouts)


def _shown(part: Structure, one: Structure, mapped: FieldMap, place: FieldMap, stored: Relayout) -> Part:
    """The field of an array with the term of what it is stored in."""
    field = part.fields[mapped.field]
    term = next(p.term for p in stored.parts if one.fields[place.field].name in p.fields)
    return Part((field.name,), field.bytes, term)


def _buffer_name(one: Structure) -> str:
    names = [field.name for field in one.fields]
    tail = names if len(names) <= FEW else [names[0], f"and_{len(names) - 1}_more"]
    return re.sub(r"\W+", "_", "_".join(tail)).strip("_")


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
