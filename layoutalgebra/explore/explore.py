"""Candidate layouts of traced structures: bounded, deterministic, one candidate for each index map.

A family proposes a plan, the rewriting rules make the layout of it; the cost model only orders them, so that the likely
winners are measured first.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from layout_advise.layoutalgebra.derive.derive import plain_reason
from layout_advise.layoutalgebra.derive.structure import Candidate, Structure
from layout_advise.layoutalgebra.explore.cost_model import Walk, cost_of
from layout_advise.layoutalgebra.explore.families import can_pad, partitioned, proposals
from layout_advise.layoutalgebra.explore.joint_candidates import derivations, in_turn, spread, together
from layout_advise.layoutalgebra.explore.partitions import Suggested
from layout_advise.layoutalgebra.explore.pattern_proposals import pattern_proposals
from layout_advise.layoutalgebra.explore.relayout import drops_bytes, map_key, relayout, tight_plan

GATHER = "gather"
"""Family, and step of the derivation: scattered objects in one array, in the order of pointers to them or of addresses."""

CHEAPER = 0.95
"""A rival is a candidate if it costs at most this part of the cheapest family's cycles."""


def explore(
    structures: Sequence[Structure],
    *,
    lanes: Sequence[int] = (16, 32),
    budget: int = 10,
    walks: Mapping[str, Walk] | None = None,
    refused: Collection[str] = (),
    exchanged: Collection[frozenset[str]] = (),
    suggested: Mapping[str, Sequence[Suggested]] = MappingProxyType({}),
) -> tuple[Candidate, ...]:
    """Candidates ``c1, c2, ...`` for ``structures``, cheapest under the model first.

    ``lanes`` are vector lengths in bytes. At most ``budget`` candidates for one structure; where several structures have
    some, the best family is also proposed for all of them together, first in the list. Structures to which no rule applies
    (plain arrays of which no elements are chosen, single elements, inexact ones) get none. Those in ``refused``, to which
    the hotspot's code cannot be made to go elsewhere, get one by themselves, the last ones: what they would be. Structures
    that are ``exchanged`` for each other are re-laid alike or not at all. ``suggested`` are partitions of fields, by
    structure, to try too.
    """
    walks = walks or {}
    each: list[list[Candidate]] = []
    apart = {name for name, walk in walks.items() if walk.chosen is not None}
    for alike in in_turn(structures, exchanged, apart):
        walk = _common([walks.get(s.id, Walk(len(s.dims) - 1)) for s in alike])
        if plain_reason(alike[0]) is None or walk.chosen is not None or (walk.shared and can_pad(alike[0])):
            each.append(spread(_of_one(alike, walk, tuple(sorted(set(lanes))), suggested.get(alike[0].id, ())), budget))
    told = [found[0] for found in each if found and any(r.structure.id in refused for r in found[0].relayouts)]
    each = [found for found in each if found and not any(r.structure.id in refused for r in found[0].relayouts)]
    ranked = sorted((c for found in each for c in found), key=promise(structures))
    found = [*(together(each) if len(each) > 1 else []), *ranked]
    if told:
        found = [*spread(found, max(1, budget - len(told))), *told]
    return tuple(replace(c, id=f"c{number}") for number, c in enumerate(found, 1))


def promise(structures: Sequence[Structure]) -> Callable[[Candidate], float]:
    """The part of the hotspot's time that a candidate leaves, if time is spent as accesses are.

    A structure that the hotspot uses little has little to give, however badly it lies.
    """
    accesses = {s.id: sum(f.reads + f.writes for f in s.fields) for s in structures}
    total = max(sum(accesses.values()), 1)

    def left(candidate: Candidate) -> float:
        share = sum(accesses[r.structure.id] for r in candidate.relayouts) / total
        return 1.0 - share * (1.0 - candidate.cost["relative"])

    return left


def _common(walks: Sequence[Walk]) -> Walk:
    """The walk of structures that are exchanged for each other: the widest use of any of them."""
    first = walks[0]
    if len(walks) == 1:
        return first
    gathered, shared = any(w.gathered for w in walks), any(w.shared for w in walks)
    return Walk(first.fastest, gathered, max(w.density for w in walks), None, shared)


def _of_one(
    alike: Sequence[Structure], walk: Walk, lanes: tuple[int, ...], suggested: Sequence[Suggested] = ()
) -> list[Candidate]:
    """All candidates of one structure, or of several that are to be alike, ranked, one for each index map."""
    structure = alike[0]
    dropped, vector = drops_bytes(structure), max(lanes, default=16)
    before = cost_of(structure, walk, vector)["cycles"]
    found: dict[object, Candidate | None] = {}
    if not structure.single and not dropped:  # the layout as it is is no candidate
        found[map_key(relayout(structure, tight_plan(structure)))] = None
    further = () if walk.chosen is not None else partitioned(structure, suggested, lanes)
    for proposal in (*proposals(structure, walk, lanes), *pattern_proposals(structure, walk, lanes), *further):
        layout = relayout(structure, proposal.plan)
        key = map_key(layout)
        if key in found:
            if (known := found[key]) is not None:
                found[key] = replace(known, proposers=tuple(dict.fromkeys((*known.proposers, proposal.proposer))))
            continue
        found[key] = None
        cost = cost_of(layout, walk, vector)
        cost["relative"] = cost["cycles"] / max(before, 1e-9)
        others = (c.cost["relative"] for c in found.values() if c is not None)
        if proposal.rival and any(cost["relative"] > CHEAPER * other for other in others):
            continue
        gathered = [GATHER] if structure.single else []
        compact = ["compact"] if dropped and proposal.families else []
        families = tuple(dict.fromkeys([*gathered, *proposal.families, *compact]))
        layouts = (layout, *(relayout(other, proposal.plan) for other in alike[1:]))
        steps = (*gathered, *layout.rules)
        who = (proposal.proposer,)
        one = Candidate("", layouts, families, steps, proposal.block, False, bool(compact), cost, who)
        found[key] = replace(one, derivation=derivations(one)) if len(alike) > 1 else one
    return sorted((c for c in found.values() if c is not None), key=_rank)


def _rank(candidate: Candidate) -> tuple[object, ...]:
    """Cheapest first; of equal ones, chosen elements as records before arrays and blocks of them."""
    chosen = candidate.relayouts[0].chosen is not None
    taken_apart = chosen and not {"soa", "aosoa"}.isdisjoint(candidate.families)
    return candidate.cost["relative"], taken_apart, candidate.families, candidate.block or 0
