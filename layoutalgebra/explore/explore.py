"""Candidate layouts of traced structures: bounded, deterministic, one candidate for each index map.

Every family is a plan of :mod:`layout_advise.layoutalgebra.explore.relayout`; the cost model only orders them, so that the
likely winners are measured first. Its figures stand in ``Candidate.cost``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from layout_advise.layoutalgebra.derive.derive import plain_reason
from layout_advise.layoutalgebra.derive.structure import Candidate, Chosen, Field, FieldMap, Relayout, Structure
from layout_advise.layoutalgebra.explore.joint_candidates import deinterleaved, derivations, in_turn, together
from layout_advise.layoutalgebra.explore.relayout import LINE, AxisStep, Group, LayoutPlan, relayout, whole
from layout_advise.layoutalgebra.explore.traffic import lines_touched

PAGE = 4096
GATHER = "gather"
"""Family, and step of the derivation: scattered objects put into one array in the order of the pointers to them."""
HALF = 0.6
"""Part of the elements below which it is tried to store every other one apart."""
MANY = 64
"""How many times more elements than inner positions there must be for the elements to become the last dimension."""
MOST_GROWN, SMALL_PADDED = 2, 64 << 10
"""Lines of their own for elements that threads share lines for: at most so many times the bytes, or so many bytes."""
LINE_CYCLES, LOAD_CYCLES, STREAM_CYCLES, STREAMS = 12.0, 1.0, 2.0, 12
"""The cost model: cycles a line from memory, a load instruction, a stream beyond those that the prefetchers follow."""


@dataclass(frozen=True, slots=True)
class Walk:
    """How the hotspot walks a structure: the dimension of its innermost loops, whether elements come in random order,
    which part of the elements one call touches, and which ones where they are one of each few neighbours."""

    fastest: int
    gathered: bool = False
    density: float = 1.0
    chosen: Chosen | None = None
    shared: bool = False
    """Whether threads meet in its lines, each at elements of its own (false sharing)."""


@dataclass(frozen=True, slots=True)
class _Proposal:
    plan: LayoutPlan
    families: tuple[str, ...]
    derivation: tuple[str, ...]
    block: int | None = None


def explore(
    structures: Sequence[Structure],
    *,
    lanes: Sequence[int] = (16, 32),
    budget: int = 10,
    walks: Mapping[str, Walk] | None = None,
    refused: Collection[str] = (),
    exchanged: Collection[frozenset[str]] = (),
) -> tuple[Candidate, ...]:
    """Candidates ``c1, c2, ...`` for ``structures``, cheapest under the model first.

    ``lanes`` are vector lengths in bytes. At most ``budget`` candidates for one structure; where several structures have
    some, the best family is also proposed for all of them together, first in the list. Structures to which no rule applies
    (plain arrays of which no elements are chosen, single elements, inexact ones) get none. Those in ``refused``, to which
    the hotspot's code cannot be made to go elsewhere, get one by themselves, the last ones: what they would be. Structures
    that are ``exchanged`` for each other are re-laid alike or not at all.
    """
    walks = walks or {}
    each: list[list[Candidate]] = []
    apart = {name for name, walk in walks.items() if walk.chosen is not None}
    for alike in in_turn(structures, exchanged, apart):
        walk = _common([walks.get(s.id, Walk(len(s.dims) - 1)) for s in alike])
        if plain_reason(alike[0]) is None or walk.chosen is not None or (walk.shared and can_pad(alike[0])):
            each.append(_of_one(alike, walk, tuple(sorted(set(lanes))))[:budget])
    told = [found[0] for found in each if found and any(r.structure.id in refused for r in found[0].relayouts)]
    each = [found for found in each if found and not any(r.structure.id in refused for r in found[0].relayouts)]
    ranked = sorted((c for found in each for c in found), key=_promise(structures))
    found = [*(together(each) if len(each) > 1 else []), *ranked]
    if told:
        found = [*found[: max(1, budget - len(told))], *told]
    return tuple(replace(c, id=f"c{number}") for number, c in enumerate(found, 1))


def _promise(structures: Sequence[Structure]) -> Callable[[Candidate], float]:
    """What the model leaves of the hotspot's time, if it is spent as the accesses are: a structure of which the hotspot uses
    little has little to give, however badly it lies."""
    accesses = {s.id: sum(f.reads + f.writes for f in s.fields) for s in structures}
    total = max(sum(accesses.values()), 1)

    def left(candidate: Candidate) -> float:
        share = sum(accesses[r.structure.id] for r in candidate.relayouts) / total
        return 1.0 - share * (1.0 - candidate.cost["relative"])

    return left


def _common(walks: Sequence[Walk]) -> Walk:
    """How structures that take each other's place are walked, now this one, now that one."""
    first = walks[0]
    if len(walks) == 1:
        return first
    gathered, shared = any(w.gathered for w in walks), any(w.shared for w in walks)
    return Walk(first.fastest, gathered, max(w.density for w in walks), None, shared)


def _of_one(alike: Sequence[Structure], walk: Walk, lanes: tuple[int, ...]) -> list[Candidate]:
    """All candidates of one structure, or of several that are to be alike, ranked, one for each index map."""
    structure = alike[0]
    before = _cost(structure, walk, max(lanes, default=16))
    tight = relayout(structure, LayoutPlan((_group(structure, range(len(structure.fields))),)))
    as_it_is = structure.via is None and not _drops(structure)
    seen: set[object] = {_key(tight)} if as_it_is else set()  # the layout as it is is no candidate
    found = []
    for proposal in _proposals(structure, walk, lanes):
        layout = relayout(structure, proposal.plan)
        key = _key(layout)
        if key in seen:
            continue
        seen.add(key)
        cost = _cost(layout, walk, max(lanes, default=16))
        cost["relative"] = cost["cycles"] / max(before["cycles"], 1e-9)
        dropped = _drops(structure) and bool(proposal.families)
        first = [GATHER] if structure.via is not None else []
        families = tuple(dict.fromkeys([*first, *proposal.families, *(["compact"] if dropped else [])]))
        steps = tuple(dict.fromkeys([*first, *proposal.derivation, *(["7"] if dropped else [])]))
        layouts = (layout, *(relayout(other, proposal.plan) for other in alike[1:]))
        one = Candidate("", layouts, families, steps, proposal.block, False, dropped, cost)
        found.append(replace(one, derivation=derivations(one)) if len(alike) > 1 else one)
    return sorted(found, key=lambda c: (c.cost["relative"], c.families, c.block or 0))


def _key(layout: Relayout) -> tuple[object, ...]:
    """What two plans share if they induce the same map; an index that is always 0 does not count."""
    return tuple(
        (m.field, m.buffer, m.offset, tuple(a for a in m.axes if layout.structure.dims[a.dim].count > 1))
        for m in layout.fields
    )


def _drops(structure: Structure) -> bool:
    """Whether unused bytes of the element would be left out (rule 7)."""
    plan = LayoutPlan((_group(structure, range(len(structure.fields))),))
    return relayout(structure, plan).bytes < structure.count * structure.element_bytes


def _group(structure: Structure, fields: Sequence[int], inner: tuple[AxisStep, ...] = (), record: int = 0) -> Group:
    kept = tuple(step for step in whole(structure) if all(step.dim != i.dim for i in inner))
    return Group(tuple(fields), kept, inner, record)


def _proposals(structure: Structure, walk: Walk, lanes: tuple[int, ...]) -> Iterator[_Proposal]:
    """Every family, most specific name first (the first of two equal maps is kept)."""
    fields = structure.fields
    everything = tuple(range(len(fields)))
    dims = len(structure.dims)
    steps = whole(structure)
    moves = ("4",) * dims
    if structure.via is not None:  # the objects as they are, one after another
        yield _Proposal(LayoutPlan((_group(structure, everything, record=structure.element_bytes),)), (), ())
    if len(fields) > 1:
        yield _Proposal(LayoutPlan(tuple(Group((n,), steps) for n in everything)), ("soa",), moves)
    yield from _blocked(structure, lanes)
    yield _Proposal(
        LayoutPlan((_group(structure, everything),)), ("split", "compact") if structure.cold else ("compact",), ("7",)
    )
    yield from _splits(structure)
    for place in range(1, dims):
        if len(fields) > 1:
            yield _Proposal(LayoutPlan((Group(everything, steps[:place], steps[place:]),)), ("permute",), moves[place:])
    if 0 <= walk.fastest < dims - 1:
        order = (*(s for s in steps if s.dim != walk.fastest), steps[walk.fastest])
        yield _Proposal(LayoutPlan((Group(everything, order),)), ("permute",), ("4",))
        if len(fields) > 1:
            yield _Proposal(LayoutPlan(tuple(Group((n,), order) for n in everything)), ("soa", "permute"), moves)
    inner = structure.count // structure.dims[0].count
    if len(fields) > 1 and dims > 1 and structure.dims[0].count >= MANY * inner:  # an array for each number of an element
        yield _Proposal(
            LayoutPlan(tuple(Group((n,), (*steps[1:], steps[0])) for n in everything)), ("soa", "permute"), moves
        )
    yield from _reordered(structure, everything)
    if walk.shared:
        yield from _own_lines(structure)
    if walk.chosen is not None:
        yield _apart(structure, walk.chosen)
    elif walk.density <= HALF and structure.dims[0].count > 2:  # even and odd apart: A_n -> A_n/2 ⊗ A_2 -> A_2 ⊗ A_n/2
        halves = (AxisStep(0, "mod", 2), AxisStep(0, "div", 2), *steps[1:])
        pad = structure.dims[0].count % 2 != 0
        families, rules = (("permute", "pad"), ("8", "5", "4")) if pad else (("permute",), ("5", "4"))
        yield _Proposal(LayoutPlan((Group(everything, halves),)), families, rules)


def _apart(structure: Structure, chosen: Chosen) -> _Proposal:
    """The chosen elements apart from the others: blocks cut (rule 5), the classes split (9), what is unused dropped (7)."""
    steps = [AxisStep(s.dim, "div", chosen.block) if s.dim == chosen.dim else s for s in whole(structure)]
    group = Group(tuple(range(len(structure.fields))), tuple(steps))
    pad = structure.dims[chosen.dim].count % chosen.block != 0
    families = ("split", "compact", *(("pad",) if pad else ()))
    return _Proposal(LayoutPlan((group,), chosen), families, (*(("8",) if pad else ()), "5", "9", "7"))


def _blocked(structure: Structure, lanes: tuple[int, ...]) -> Iterator[_Proposal]:
    """AoSoA (rule 5 once, one part to the right): blocks of as many elements as a vector holds fields."""
    if len(structure.fields) < 2:
        return
    last = len(structure.dims) - 1
    size = _main_size(structure.fields)
    for vector in lanes:
        block = vector // size
        if block > 1 and structure.dims[last].count > block:
            outer = (*whole(structure)[:last], AxisStep(last, "div", block))
            pad = structure.dims[last].count % block != 0
            plan = LayoutPlan((Group(tuple(range(len(structure.fields))), outer, (AxisStep(last, "mod", block),)),))
            families = ("aosoa", "pad") if pad else ("aosoa",)
            yield _Proposal(plan, families, (*(("8",) if pad else ()), "5", "4"), block)


def _main_size(fields: Sequence[Field]) -> int:
    """The size of the fields that are accessed most."""
    weight: dict[int, int] = {}
    for field in fields:
        weight[field.bytes] = weight.get(field.bytes, 0) + field.reads + field.writes + 1
    return max(weight, key=lambda size: (weight[size], -size))


def _splits(structure: Structure) -> Iterator[_Proposal]:
    """Rule 9: written fields apart from read ones, and the most accessed apart from the others."""
    fields = structure.fields
    numbers = range(len(fields))
    most = max(f.reads + f.writes for f in fields)
    written = [n for n in numbers if fields[n].writes]
    hot = [n for n in numbers if 2 * (fields[n].reads + fields[n].writes) > most]
    for chosen in (written, hot):
        rest = [n for n in numbers if n not in chosen]
        if chosen and rest:
            groups = sorted((chosen, rest))
            yield _Proposal(LayoutPlan(tuple(_group(structure, g) for g in groups)), ("split",), ("9",))
    pairs = [(n, n + 1) for n in numbers if n % 2 == 0 and n + 1 < len(fields)]
    adjacent = all(
        fields[a].bytes == fields[b].bytes and fields[a].offset + fields[a].bytes == fields[b].offset for a, b in pairs
    )
    if len(fields) >= 4 and 2 * len(pairs) == len(fields) and adjacent:  # complex numbers: the pattern *⊗A⊗S_c
        yield _Proposal(LayoutPlan(tuple(_group(structure, p) for p in pairs)), ("soa", "split"), ("9", "4"))


def _reordered(structure: Structure, everything: tuple[int, ...]) -> Iterator[_Proposal]:
    """Fields by falling size (no holes), and records padded to a divisor of the line (no element on two lines)."""
    fields = structure.fields
    order = tuple(sorted(everything, key=lambda n: -fields[n].bytes))
    natural = relayout(structure, LayoutPlan((_group(structure, everything),))).bytes // structure.count
    tidy = relayout(structure, LayoutPlan((_group(structure, order),))).bytes // structure.count
    if tidy < natural:
        yield _Proposal(LayoutPlan((_group(structure, order),)), ("reorder",), ("4",))
    if natural % LINE and LINE % natural:
        record = next(r for r in (8, 16, 32, 64, -(-natural // LINE) * LINE) if r >= natural)
        if record <= natural + natural // 2:
            yield _Proposal(LayoutPlan((_group(structure, everything, record=record),)), ("pad",), ("8",))


def can_pad(structure: Structure) -> bool:
    """Whether some elements, or rows of them, could get lines of their own."""
    return structure.inexact is None and structure.count > 1 and any(_own_lines(structure))


def _own_lines(structure: Structure) -> Iterator[_Proposal]:
    """Lines of their own (rule 8) for the elements, or for the rows of them, that threads have each for itself; where that
    takes little memory. Whole rows first."""
    everything, steps = tuple(range(len(structure.fields))), whole(structure)
    for depth in range(1, len(steps) + 1):
        if structure.via is not None or (depth < len(steps) and len(everything) > 1):
            continue  # rows of several fields would have these apart
        plan = LayoutPlan((Group(everything, steps[:depth], steps[depth:], LINE),))
        rows = structure.count // prod(d.count for d in structure.dims[depth:])
        grown = rows * -(-structure.dims[depth - 1].stride // LINE) * LINE
        if structure.dims[depth - 1].stride % LINE and grown <= max(MOST_GROWN * structure.bytes, SMALL_PADDED):
            yield _Proposal(plan, ("pad",), ("8",))


def _unshared(layout: Relayout) -> bool:
    """Whether what has another outermost index lies on other lines."""
    first = [m.axes[0] for m in layout.fields]
    return all((a.dim, a.part) == (0, "whole") and a.stride % LINE == 0 for a in first)


def _cost(layout: Structure | Relayout, walk: Walk, vector: int) -> dict[str, float]:
    """Lines, pages, streams and loads of one walk over every element, and the cycles that the model makes of them."""
    structure = layout if isinstance(layout, Structure) else layout.structure
    lines, pages = float(lines_touched(layout)), float(lines_touched(layout, line=PAGE))
    if isinstance(layout, Structure):
        strides = [structure.dims[walk.fastest].stride] * len(structure.fields)
        places = {(0, 0)}
    else:
        strides, places = strides_and_places(structure, layout.fields, walk.fastest)
    chosen = layout.chosen if isinstance(layout, Relayout) else None
    elements = structure.count // chosen.block if chosen else structure.count
    if walk.gathered:  # each element alone: one line for every separate record, whatever the neighbours are
        lines = max(lines, float(elements * len(places)))
    if not isinstance(layout, Structure) and deinterleaved(layout):
        lines *= walk.density  # the elements that are not touched lie apart now
    loads = 0.0
    for field, stride in zip(structure.fields, strides, strict=True):
        unit = stride == field.bytes and not walk.gathered
        loads += elements * (field.bytes / vector if unit else 1.0)
    extra = elements / 8 * max(0, len(places) - STREAMS)
    if walk.shared and (isinstance(layout, Structure) or not _unshared(layout)):
        lines += sum(f.reads + f.writes for f in structure.fields)  # the line is with the other thread each time
    cycles = lines * LINE_CYCLES + loads * LOAD_CYCLES + extra * STREAM_CYCLES
    return {"lines": lines, "pages": pages, "streams": float(len(places)), "loads": loads, "cycles": cycles}


def strides_and_places(
    structure: Structure, maps: Sequence[FieldMap], fastest: int
) -> tuple[list[int], set[tuple[int, int]]]:
    """The step of each field along the fastest dimension, and the places at which separate streams run."""
    inner = {"whole": 2, "mod": 1, "div": 0}
    moving = [[a for a in m.axes if a.dim == fastest] for m in maps]
    strides = [max(axes, key=lambda a: inner[a.part]).stride for axes in moving]
    apart = [all(a.part == "whole" for a in m.axes) for m in maps]
    places = {
        (m.buffer, m.offset if own and stride == structure.fields[m.field].bytes else 0)
        for m, stride, own in zip(maps, strides, apart, strict=True)
    }
    return strides, places
