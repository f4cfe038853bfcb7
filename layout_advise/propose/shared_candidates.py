"""Layouts of structures that several regions use: the same ones are measured in each of these.

Structures are the same where they are the same memory with the same elements and fields; those of a region are united with
the accesses of all others before (:func:`layout_advise.observe.observe.united`). Layouts that need the lifted code (merged
arrays, gathered objects, chosen elements) are proposed for one region alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import zip_longest

from layout_advise.layoutalgebra.derive.structure import Candidate, Relayout, Structure
from layout_advise.layoutalgebra.explore.joint_candidates import derivations
from layout_advise.layoutalgebra.explore.relayout import map_key

Place = tuple[int, int]


def place_of(structure: Structure) -> Place:
    """The memory of a structure: address and bytes of its block."""
    return structure.block_base or structure.base, structure.bytes


def layout_key(candidate: Candidate) -> frozenset[object]:
    """Equal for candidates that lay out the same memory in the same way, whatever their structures are called."""
    return frozenset((place_of(r.structure), map_key(r), tuple(b.bytes for b in r.buffers)) for r in candidate.relayouts)


def shared_candidates(by_region: Sequence[Sequence[Candidate]], budget: int) -> tuple[Candidate, ...]:
    """One list for all regions, of what was proposed for each: in turn the best of each region, the second best and so on,
    as long as there are at most ``budget`` of the structures of that region. Numbered anew, ``c1`` first."""
    chosen: dict[frozenset[object], Candidate] = {}
    for candidate in _in_turn(by_region):
        if (key := layout_key(candidate)) in chosen:
            chosen[key] = _found_by_both(chosen[key], candidate)
            continue
        places = {place_of(r.structure) for r in candidate.relayouts}
        alike = sum(bool(places & {place_of(r.structure) for r in one.relayouts}) for one in chosen.values())
        if alike < budget:
            chosen[key] = candidate
    return tuple(replace(c, id=f"c{number}") for number, c in enumerate(chosen.values(), 1))


def _found_by_both(one: Candidate, other: Candidate) -> Candidate:
    return replace(one, proposers=tuple(dict.fromkeys((*one.proposers, *other.proposers))))


def _in_turn(by_region: Sequence[Sequence[Candidate]]) -> Iterator[Candidate]:
    for row in zip_longest(*by_region):
        yield from (candidate for candidate in row if candidate is not None)


def fitted(candidates: Sequence[Candidate], structures: Sequence[Structure]) -> tuple[Candidate, ...]:
    """The candidates as a region has them with these ``structures``: of those that it uses alone, each layout once. One that
    lays out a structure in a way that does not fit it here is left out."""
    here = {place_of(structure): structure for structure in structures if structure.placed}
    found: dict[frozenset[object], Candidate] = {}
    for candidate in candidates:
        own = [(r, here[place_of(r.structure)]) for r in candidate.relayouts if place_of(r.structure) in here]
        if own and all(_same(r.structure, structure) for r, structure in own):
            fit = _of(candidate, [_as_here(r, structure) for r, structure in own])
            found.setdefault(layout_key(fit), fit)
    return tuple(found.values())


def with_own(given: Sequence[Candidate], own: Sequence[Candidate], budget: int, first: int) -> tuple[Candidate, ...]:
    """The ``given`` candidates, then those of the region's ``own`` that are none of them, at most ``budget`` in all but
    always one where there is one; numbered from ``first`` on."""
    known = {layout_key(candidate) for candidate in given}
    special = [c for c in own if layout_key(c) not in known and _is_special(c)]
    return (*given, *renumbered(special[: max(1, budget - len(given))], first))


def renumbered(candidates: Sequence[Candidate], first: int) -> tuple[Candidate, ...]:
    """The candidates with ids from ``c<first>`` on."""
    return tuple(replace(c, id=f"c{number}") for number, c in enumerate(candidates, first))


def _is_special(candidate: Candidate) -> bool:
    """Whether it cannot be proposed without the lifted code."""
    return any(r.merged is not None or r.chosen is not None or not r.structure.placed for r in candidate.relayouts)


def _same(one: Structure, other: Structure) -> bool:
    """Whether they have the same elements and fields (what a region knows of them beyond that may differ)."""
    spans = ([(f.offset, f.bytes) for f in s.fields] for s in (one, other))
    return (one.base, one.dims) == (other.base, other.dims) and next(spans) == next(spans)


def _as_here(layout: Relayout, structure: Structure) -> Relayout:
    """The layout of the same memory as a region has it, whose fields may be called otherwise."""
    names = {old.name: new.name for old, new in zip(layout.structure.fields, structure.fields, strict=True)}
    parts = tuple(replace(p, fields=tuple(names[name] for name in p.fields)) for p in layout.parts)
    return replace(layout, structure=structure, parts=parts)


def _of(candidate: Candidate, relayouts: Sequence[Relayout]) -> Candidate:
    alone = replace(candidate, relayouts=tuple(relayouts), derivation=relayouts[0].rules)
    return replace(alone, derivation=derivations(alone)) if len(relayouts) > 1 else alone
