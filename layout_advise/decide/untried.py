"""No ``keep`` of what was not tried: objects apart, elements picked by an index, records that nothing declares."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from layout_advise.decide.policy import DECIDE
from layout_advise.decide.verdict import undecided
from layout_advise.layoutalgebra.derive.accesses import Derived
from layout_advise.layoutalgebra.derive.derive import plain_reason
from layout_advise.layoutalgebra.derive.structure import Candidate
from layout_advise.layoutalgebra.explore.families import HALF
from layout_advise.observe.observe import Observation, density
from layout_advise.observe.other_kinds import Others, blocks_of
from layout_advise.reasons import Reason
from layout_advise.reports.model.hotspot import Verdict


def with_untried(verdict: Verdict, seen: Observation, tried: Collection[Candidate]) -> Verdict:
    """``verdict``, unless it is a ``keep`` and something of what the call touches was not tried. ``tried`` are the
    candidates that were measured."""
    verdict = doubt_unknown(doubt_steps(doubt_sparse(verdict, seen, tried), seen.derived), seen)
    return doubt_scattered(verdict, seen)


def doubt_scattered(verdict: Verdict, seen: Observation) -> Verdict:
    """No ``keep`` where objects that were allocated one by one are reached through pointers: storing these together was not
    tried."""
    if verdict.action != "keep" or not seen.scattered:
        return verdict
    why = f" ({'; '.join(seen.refused)})" if seen.refused else ""
    text = (
        f"the hotspot reaches at least {seen.scattered} blocks of the heap through pointers; storing their contents "
        f"together, for good or for a call, was not tried{why}."
    )
    return undecided(Reason.SCATTERED_OBJECTS, text)


def doubt_sparse(verdict: Verdict, seen: Observation, tried: Collection[Candidate]) -> Verdict:
    """No ``keep`` where an index picks out a part of the elements and storing these together was not tried. That
    is done only where they are one of each few neighbours, and it can be the best layout."""
    chosen = {r.structure.id for c in tried for r in c.relayouts if r.chosen is not None}
    rare = [d.structure for d in seen.derived if density(seen, d) <= HALF]
    sparse = [structure.name for structure in rare if structure.id not in chosen]
    if verdict.action != "keep" or not sparse:
        return verdict
    text = (
        f"no measured layout is faster, but the index picks out a part of the elements of {', '.join(sparse)}, and storing "
        "these together was not tried."
    )
    return undecided(Reason.NOT_ALL_TRIED, text)


def doubt_unknown(verdict: Verdict, seen: Observation) -> Verdict:
    """No ``keep`` where much of what the hotspot accesses could not be told apart: of that no layout was tried."""
    parts = accesses_of(seen)
    total = sum(parts.values())
    unknown = [
        d.structure for d in seen.derived if d.structure.inexact and parts[d.structure.id] >= DECIDE.unknown_accesses * total
    ]
    if verdict.action != "keep" or not total or not unknown:
        return verdict
    most = max(unknown, key=lambda s: parts[s.id])
    text = (
        f"what `{most.name}` holds could not be recognised ({most.inexact}), so no layout of it was tried; "
        f"{parts[most.id] / total:.0%} of the accesses to data go there."
    )
    return undecided(Reason.STRUCTURE_UNCLEAR, text)


def accesses_of(seen: Observation) -> dict[str, int]:
    """By structure how often the traced call accesses it; what goes to several places counts in full for each of them."""
    found = {d.structure.id: 0 for d in seen.derived}
    if seen.attribution is None:
        return found
    streams = (seen.team or seen.trace).streams
    counts = [0] * len(seen.attribution.objects)
    for stream, touches in zip(streams, seen.attribution.touches, strict=True):
        for touch in touches:
            counts[touch.object] += touch.accesses if touch.accesses is not None else stream.count if stream else 0
    for d in seen.derived:
        within = (k for k, o in enumerate(seen.attribution.objects) if o.base <= d.structure.base < o.end)
        found[d.structure.id] = sum(counts[k] for k in within)
    return found


def doubt_steps(verdict: Verdict, derived: Sequence[Derived]) -> Verdict:
    """No ``keep`` where a plain array may hold records that nothing declares: of these no layout was tried."""
    steps = {d.structure.name: d.steps for d in derived if d.steps > 1}
    if verdict.action != "keep" or not steps:
        return verdict
    name, step = next(iter(steps.items()))
    text = (
        f"`{name}` is declared as single numbers, and every access goes on in steps of {step}, as if {step} of them made a "
        f"record. No layout of such records was tried: declared as one (a structure of {step}, or an array of rows of "
        f"{step}) they would be."
    )
    return undecided(Reason.RECORDS_UNCLEAR, text)


def with_untried_kinds(verdict: Verdict, seen: Observation, others: Others) -> Verdict:
    """No ``keep`` where calls of other kinds use structures of their own, for which no layout was tried."""
    known = blocks_of(seen.structures)
    found = [s for one in others.tried for s in one.seen.structures if plain_reason(s) is None]
    names = dict.fromkeys(s.name for s in found if not blocks_of((s,)) <= known)
    if verdict.action != "keep" or not names:
        return verdict
    text = f"no measured layout is faster, but {', '.join(names)}, which only calls of another kind use, was not re-laid."
    return undecided(Reason.NOT_ALL_TRIED, text)


def not_all_kinds(verdict: Verdict) -> Verdict:
    """No answer where calls with much of the hotspot's time were not measured."""
    if verdict.action == "undecided":
        return verdict
    text = f"calls with a good part of the hotspot's time were not measured. Of the others: {verdict.text}"
    return undecided(Reason.KINDS_NOT_MEASURED, text)
