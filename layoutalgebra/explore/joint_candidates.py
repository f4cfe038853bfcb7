"""Structures that are re-laid at once: which ones have to be alike, and candidates of several structures.

A program with two buffers that it swaps after each step has one declaration, and one code, for both: one of them alone
cannot be laid out differently, whatever part of the element a call uses of either.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence

from layout_advise.layoutalgebra.derive.structure import Candidate, Relayout, Structure

TOGETHER = 7
"""At most so many layouts are proposed for all structures at once."""

PARTITIONERS = frozenset(("field graph", "affinity", "tiles"))
"""Proposers whose layouts of one family differ in what they keep together, or in the lengths of blocks."""

Span = tuple[int, int]


def used(structure: Structure) -> frozenset[Span]:
    """The spans (from, to) of an element that the hotspot accesses."""
    return frozenset((f.offset, f.offset + f.bytes) for f in structure.fields)


def twins(structures: Sequence[Structure]) -> tuple[tuple[Structure, ...], ...]:
    """Structures that look like arrays of one declaration: as many elements of one type, or of one size where no type is
    known, in blocks of one size and kind."""
    groups: dict[tuple[object, ...], list[Structure]] = {}
    for one in structures:
        if one.inexact is None and one.placed and one.count > 1:
            key = (one.type, one.element_bytes, one.count, one.bytes, one.kind)
            groups.setdefault(key, []).append(one)
    return tuple(tuple(group) for group in groups.values() if len(group) > 1)


def unlike(structures: Sequence[Structure]) -> bool:
    """True if they have different fields."""
    return len({used(one) for one in structures}) > 1


def taking_turns(before: Sequence[Structure], after: Sequence[Structure]) -> tuple[frozenset[str], ...]:
    """Ids of the twins of which some has a field in ``after``, where further calls count too, that only another one of them
    has in ``before``."""
    now = {one.id: one for one in after}
    found = []
    for group in twins(before):
        known = frozenset[Span]().union(*(used(one) for one in group))
        if any((used(now[one.id]) - used(one)) & known for one in group if one.id in now):
            found.append(frozenset(one.id for one in group))
    return tuple(found)


def can_be_rearranged(structures: Sequence[Structure]) -> bool:
    """True if another layout could move something in them: several fields or dimensions."""
    return any(len(one.fields) > 1 or len(one.dims) > 1 for one in structures)


def changing_places(
    groups: Sequence[Sequence[Structure]],
    before: Mapping[str, frozenset[Hashable]],
    after: Mapping[str, frozenset[Hashable]],
) -> tuple[frozenset[str], ...]:
    """Ids of those of ``groups`` of which some code works on one structure at one call and on another one at the next.
    ``before`` and ``after`` are the references that touch a structure, by its id."""
    nothing = frozenset[Hashable]()

    def moved(one: str, other: str) -> bool:
        left = before.get(one, nothing) - before.get(other, nothing)
        return bool(left & (after.get(other, nothing) - after.get(one, nothing)))

    names = [frozenset(one.id for one in group) for group in groups]
    return tuple(ids for ids in names if any(moved(one, other) for one in ids for other in ids if one != other))


def in_turn(
    structures: Sequence[Structure], exchanged: Collection[frozenset[str]], apart: Collection[str] = ()
) -> Iterator[tuple[Structure, ...]]:
    """The structures in their order, those together that are to be laid out alike: those of one set of ``exchanged``, where
    they have the same dimensions and fields and none of them is ``apart``."""
    done: set[str] = set()
    for one in structures:
        if one.id in done:
            continue
        names = next((names for names in exchanged if one.id in names), frozenset((one.id,)))
        group = [other for other in structures if other.id in names]
        same = len({(other.dims, used(other)) for other in group}) == 1
        if not same or any(name in apart for name in names):
            group = [one]
        done |= {other.id for other in group}
        yield tuple(group)


def together(each: list[list[Candidate]]) -> list[Candidate]:
    """All structures re-laid at once: each by its own best candidate, and by the families that all of them have."""
    picks = [[found[0] for found in each]]
    names = {_kind(c) for c in each[0]}
    for found in each[1:]:
        names &= {_kind(c) for c in found}
    for name in sorted(names, key=str):
        picks.append([next(c for c in found if _kind(c) == name) for found in each])
    joined: dict[tuple[Relayout, ...], Candidate] = {}
    for pick in picks:
        layouts = tuple(layout for c in pick for layout in c.relayouts)
        families = tuple(dict.fromkeys(f for c in pick for f in c.families))
        derivation = tuple(step for c in pick for step in derivations(c))
        blocks = {c.block for c in pick if c.block}
        cost = {"relative": sum(c.cost["relative"] for c in pick) / len(pick)}
        block = blocks.pop() if len(blocks) == 1 else None
        kept, who = any(c.keeps_cold for c in pick), _proposers(pick)
        candidate = Candidate("", layouts, families, derivation, block, False, kept, cost, who)
        joined.setdefault(layouts, candidate)
    return spread(sorted(joined.values(), key=lambda c: c.cost["relative"]), TOGETHER)


def _proposers(pick: Sequence[Candidate]) -> tuple[str, ...]:
    """Those who proposed all of them; where nobody did, each who proposed one."""
    every = tuple(dict.fromkeys(name for c in pick for name in c.proposers))
    return tuple(name for name in every if all(name in c.proposers for c in pick)) or every


def spread(ranked: Sequence[Candidate], budget: int) -> list[Candidate]:
    """At most ``budget`` of the ``ranked`` candidates, in their order: the best of each kind of layout before a second one
    of any kind, as of another block length; what only one proposer found is a kind of its own. The cost model is too coarse
    to leave a whole kind out by."""
    seen: set[tuple[object, ...]] = set()
    first: list[int] = []
    further: list[int] = []
    for number, one in enumerate(ranked):
        families, _, halves, chosen = _kind(one)
        who = one.proposers[0] if len(one.proposers) == 1 and one.proposers[0] in PARTITIONERS else ""
        kind = tuple(r.structure.id for r in one.relayouts), families, halves, chosen, who
        (further if kind in seen else first).append(number)
        seen.add(kind)
    return [ranked[number] for number in sorted([*first, *further][: max(0, budget)])]


def derivations(candidate: Candidate) -> tuple[str, ...]:
    """The rules by structure, as a candidate of several structures has them."""
    if any(":" in step for step in candidate.derivation):
        return candidate.derivation
    steps = ",".join(candidate.derivation)
    return tuple(f"{layout.structure.id}: {steps}" for layout in candidate.relayouts)


def deinterleaved(layout: Relayout) -> bool:
    """True if every other element is stored apart."""
    return all(m.axes[0].part == "mod" and m.axes[0].dim == 0 for m in layout.fields)


def _kind(candidate: Candidate) -> tuple[tuple[str, ...], int | None, bool, int]:
    """The key that candidates of several structures must share to be tried together."""
    families = tuple(f for f in candidate.families if f not in ("compact", "pad"))
    halves, chosen = deinterleaved(candidate.relayouts[0]), candidate.relayouts[0].chosen
    return families, candidate.block, halves, chosen.block if chosen is not None else 0
