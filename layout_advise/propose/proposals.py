"""The layouts worth measuring, of the structures that the hotspot touches."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from layout_advise import machine
from layout_advise.errors import NotLiftedError, RemapError
from layout_advise.layoutalgebra.derive.structure import Candidate
from layout_advise.layoutalgebra.explore.cost_model import Walk
from layout_advise.layoutalgebra.explore.explore import explore
from layout_advise.layoutalgebra.explore.joint_candidates import spread
from layout_advise.layoutalgebra.explore.relayout import ALIGN
from layout_advise.layoutalgebra.merge.merged_candidates import SharedIndex, merged_candidates, with_merged
from layout_advise.mockup.evidence.binding import bind
from layout_advise.mockup.remap.conversion_view import View, view
from layout_advise.mockup.remap.plan import plan
from layout_advise.mockup.timing.variants import Variant
from layout_advise.observe.observe import Observation, density
from layout_advise.propose.cluster_tiles import with_tiles
from layout_advise.propose.field_clusters import suggested
from layout_advise.propose.line_starts import alone, in_whole_lines, worth_lines
from layout_advise.propose.recipes import Recipe
from layout_advise.propose.shared_index import shared_indices
from layout_advise.propose.source import Source
from layout_advise.tiles.processor.stored import stored as calibration


@dataclass(frozen=True, slots=True)
class Proposed:
    """Candidate layouts of what was seen, best under the model first; ``source`` is what mock-ups are made of, or what
    stopped the lifter."""

    seen: Observation
    source: Source | NotLiftedError
    candidates: tuple[Candidate, ...]
    unfit: Mapping[str, str] = field(default_factory=dict)
    """By the id of each structure with layouts for none of which the code can be re-indexed, why not."""


def proposed(
    seen: Observation,
    source: Source | NotLiftedError,
    budget: int,
    *,
    temporary: bool,
    beside: Sequence[Observation] = (),
) -> Proposed:
    """At most ``budget`` candidates; ``temporary``: of layouts that exist during a call only. ``beside`` are calls of other
    regions that use the structures."""
    unfit = refused(seen, source) if isinstance(source, Source) else {}
    shared = shared_indices(source.code.elements, source.trace, seen.structures) if isinstance(source, Source) else ()
    found = propose(seen, budget, unfit, shared, beside)
    if temporary:  # a copy that only begins elsewhere is none that anybody makes around a call
        found = tuple(c for c in found if ALIGN not in c.families)
    return Proposed(seen, source, tuple(replace(c, temporary=temporary) for c in found), unfit)


MOST_PLANNED = 8
"""So many layouts of a structure, of all kinds, are tried before it is given up."""


def refused(seen: Observation, source: Source) -> dict[str, str]:
    """By its id why the lifted code cannot be re-indexed for the layouts of a structure, where several could be re-laid
    together: one that cannot would keep the others from being measured."""
    each = [alone((one,)) for one in in_whole_lines(seen.structures)]
    each += [one for one in propose(replace(seen, exchanged=()), 1000) if ALIGN not in one.families]
    own: dict[str, list[Candidate]] = {}
    for one in each:
        if len(one.relayouts) == 1:
            own.setdefault(one.relayouts[0].structure.id, []).append(one)
    found: dict[str, str] = {}
    for name, candidates in own.items():
        may_be_alone = len(own) == 1 and ALIGN not in candidates[-1].families
        problems = (_problem(one, seen, source) for one in spread(candidates, MOST_PLANNED))
        first = next(problems)
        if not may_be_alone and first and all(problems):
            found[name] = first
    return found


def _problem(candidate: Candidate, seen: Observation, source: Source) -> str:
    """Why the code cannot be re-indexed for a layout; empty where it can."""
    name = Variant(candidate.relayouts[0].structure.id)
    form, trace = source.code.of(Recipe(name, candidate), seen.trace, seen.structures)
    try:
        plan(form, candidate, bind(form, trace, seen.structures))
    except RemapError as error:
        return error.why or error.what
    return ""


def propose(
    seen: Observation,
    budget: int,
    refused: Collection[str] = (),
    shared: Sequence[SharedIndex] = (),
    beside: Sequence[Observation] = (),
) -> tuple[Candidate, ...]:
    """Candidate layouts of what was seen, best under the model first, at most ``budget``; arrays with a ``shared`` index are
    also merged. Where there are none of these, plain arrays may begin with a line. What calls ``beside`` it use together
    counts as well. Where this machine's processor was calibrated, blocks are also as long as that says."""
    walks = {
        d.structure.id: Walk(
            d.fastest,
            d.gathered,
            density(seen, d),
            seen.chosen.get(d.structure.id),
            (d.structure.block_base or d.structure.base) in seen.met,
        )
        for d in seen.derived
    }
    lanes = machine.vector_bytes()
    swapped = frozenset[str]().union(*seen.exchanged)
    single = [s for s in seen.structures if s.id not in refused and s.id not in swapped]
    merged = merged_candidates(single, shared, walks, lanes)
    room = max(1, budget - 1) if merged else budget
    known = calibration()
    found = explore(
        seen.structures,
        lanes=lanes,
        budget=room,
        walks=walks,
        refused=refused,
        exchanged=seen.exchanged,
        suggested=with_tiles(seen, suggested(seen, beside), known.tree if known is not None else None),
    )
    kept = numbered(spread(found, room))
    kept = with_merged(kept, merged, seen.structures, budget) if merged else kept
    only = not kept and not seen.scattered  # a table of pointers has nothing to give where its objects have
    lines = worth_lines(seen.structures, (*refused, *swapped)) if only else None
    return kept if lines is None else numbered((lines,))


def numbered(candidates: Sequence[Candidate]) -> tuple[Candidate, ...]:
    """The candidates in their order, ``c1`` first."""
    return tuple(replace(c, id=f"c{number}") for number, c in enumerate(candidates, 1))


def views_of(source: Source, candidates: Sequence[Candidate]) -> dict[str, View]:
    """The fields that temporary versions of the candidates copy, by id; of those that the lifted code can be re-indexed
    for."""
    found = {}
    for candidate in candidates:
        lifted, trace = source.code.under(candidate, source.trace)
        binding = bind(lifted, trace, source.structures)
        with suppress(RemapError):
            found[candidate.id] = view(candidate, binding, plan(lifted, candidate, binding))
    return found
