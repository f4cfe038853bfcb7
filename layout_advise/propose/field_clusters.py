"""Partitions of the fields of a structure that the traced call suggests: by the field graph and by affinity.

Both come from the order in which the call accesses fields, which is made of the folded trace without going through its
accesses (Kofler, Cosenza and Fahringer 2015; ADHA).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from layout_advise import machine
from layout_advise.layoutalgebra.derive.structure import Structure
from layout_advise.layoutalgebra.explore.partitions import Suggested
from layout_advise.layoutalgebra.explore.plans import LINE
from layout_advise.layoutalgebra.fieldgraph.affinity import affine_clusters, affinities
from layout_advise.layoutalgebra.fieldgraph.clusters import clusterings
from layout_advise.layoutalgebra.fieldgraph.execution import (
    ReferenceFields,
    RunOrder,
    elsewhere,
    reference_fields,
    steps_of,
)
from layout_advise.layoutalgebra.fieldgraph.memory_distance import Step, memory_distances
from layout_advise.layoutalgebra.sets.nests import Affine, Loop, Point
from layout_advise.observe.observe import Observation, references_of
from layout_advise.propose.policy import PROPOSE

FIELD_GRAPH, AFFINITY = "field graph", "affinity"
"""Proposers, as :class:`Candidate` names them."""


@dataclass(frozen=True, slots=True)
class Nearness:
    """Distances and affinities of the fields of a structure, by pair of names in alphabetical order."""

    distances: Mapping[tuple[str, str], float]
    """The memory distance in bytes; of all pairs of fields that are used."""
    affinities: Mapping[tuple[str, str], float]
    """0 to 1; pairs that never meet are left out."""


def nearness(seen: Observation, structure: Structure, beside: Sequence[Observation] = ()) -> Nearness | None:
    """Of the fields of a ``structure`` of ``seen``, over its call and those ``beside``; None where there are no two fields,
    none is used, or some reference reaches them in an order that is not known."""
    fit = structure.inexact is None and structure.placed
    if not fit or not 1 < len(structure.fields) <= PROPOSE.most_clustered_fields:
        return None
    calls = [_steps(one, seen, structure) for one in (seen, *beside)]
    steps = [step for one in calls if one is not None for step in one]
    if None in calls or not any(step.fields for step in steps):
        return None
    return Nearness(memory_distances(steps), affinities(steps))


def suggested(seen: Observation, beside: Sequence[Observation] = ()) -> dict[str, tuple[Suggested, ...]]:
    """By id of a structure with several fields: the partitions that the field graph suggests, the coarsest first, and that
    of affinity; none where some reference reaches its fields in an order that is not known. The calls ``beside``, of other
    regions, follow that of ``seen``."""
    near = {structure.id: (structure, nearness(seen, structure, beside)) for structure in seen.structures}
    return {name: _partitions(structure, found) for name, (structure, found) in near.items() if found is not None}


def _order(seen: Observation) -> RunOrder:
    """The order of execution of the call; in a parallel region that of its first thread. Where it does not fold, as if each
    reference ran once in every turn of one loop, in the order of the code."""
    trace = seen.team or seen.trace
    control = trace.control if seen.team is None else next(iter(trace.team_control), None)
    if control is not None and control.nodes is not None:
        return RunOrder(control.nodes, control.pieces)
    turns = max((stream.count for stream in trace.streams if stream is not None), default=0)
    return RunOrder((Loop(Affine(turns), (Point(Affine(0)),)),), ((0, len(trace.references) - 1),))


def _steps(seen: Observation, named: Observation, structure: Structure) -> tuple[Step, ...] | None:
    """All accesses of the call of ``seen`` in their order, those to the ``structure`` of ``named`` by its fields; None where
    some reference reaches them in an order that is not known."""
    trace, own = seen.team or seen.trace, references_of(seen, named).get(structure.id, frozenset())
    references: dict[int, ReferenceFields] = {}
    for reference, stream in zip(trace.references, trace.streams, strict=True):
        if stream is None:
            continue
        if (reference.pc, reference.operand) not in own:
            references[reference.id] = elsewhere(reference.bytes)
            continue
        mixed = seen.attribution is None or seen.attribution.mixed(reference.id)
        fields = None if mixed else reference_fields(structure, stream, reference.bytes)
        if fields is None:
            return None
        references[reference.id] = fields
    return steps_of(_order(seen), references)


def _partitions(structure: Structure, near: Nearness) -> tuple[Suggested, ...]:
    """The partitions into at least two parts: of many clusterings the coarsest ones, and each field alone."""
    names = [field.name for field in structure.fields]
    every = clusterings(names, near.distances)
    some = [one for one in reversed(every) if 1 < len(one) < len(names)][: PROPOSE.most_clusterings]
    affine = affine_clusters(structure.fields, near.affinities, machine.describe().line_bytes or LINE)
    found = [Suggested(one, FIELD_GRAPH) for one in (*some, every[0])]
    return (*found, *((Suggested(affine, AFFINITY),) if len(affine) > 1 else ()))
