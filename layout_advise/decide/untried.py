"""No ``keep`` of what was not tried: objects apart, elements picked by an index, records that nothing declares."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from layout_advise.decide.verdict import undecided
from layout_advise.layoutalgebra.derive.derive import Derived
from layout_advise.layoutalgebra.explore.families import HALF
from layout_advise.measure.experiment import Trials
from layout_advise.observe.observe import Observation, density

MUCH = 0.1
"""The part of the accesses that makes what is not recognised matter."""


def doubt_scattered(trials: Trials, seen: Observation) -> Trials:
    """No ``keep`` where objects that were allocated one by one are reached through pointers: storing these together was not
    tried."""
    if trials.verdict.action != "keep" or not seen.scattered:
        return trials
    why = f" ({'; '.join(seen.refused)})" if seen.refused else ""
    text = (
        f"the hotspot reaches at least {seen.scattered} blocks of the heap through pointers; storing their contents "
        f"together, for good or for a call, was not tried{why}."
    )
    return replace(trials, verdict=undecided("scattered-objects", text))


def doubt_sparse(trials: Trials, seen: Observation) -> Trials:
    """No ``keep`` where an index picks out a part of the elements and storing these together was not tried. That
    is done only where they are one of each few neighbours, and it can be the best layout."""
    recipes = [
        made.recipe for name, made in trials.made.items() if name in trials.found and trials.found[name].reason is None
    ]
    tried = {r.structure.id for c in recipes if c.candidate for r in c.candidate.relayouts if r.chosen is not None}
    rare = [d.structure for d in seen.derived if density(seen, d) <= HALF]
    sparse = [structure.name for structure in rare if structure.id not in tried]
    if trials.verdict.action != "keep" or not sparse:
        return trials
    text = (
        f"no measured layout is faster, but the index picks out a part of the elements of {', '.join(sparse)}, and storing "
        "these together was not tried."
    )
    return replace(trials, verdict=undecided("not-all-tried", text))


def doubt_unknown(trials: Trials, seen: Observation) -> Trials:
    """No ``keep`` where much of what the hotspot accesses could not be told apart: of that no layout was tried."""
    parts = accesses_of(seen)
    total = sum(parts.values())
    unknown = [d.structure for d in seen.derived if d.structure.inexact and parts[d.structure.id] >= MUCH * total]
    if trials.verdict.action != "keep" or not total or not unknown:
        return trials
    most = max(unknown, key=lambda s: parts[s.id])
    text = (
        f"what `{most.name}` holds could not be recognised ({most.inexact}), so no layout of it was tried; "
        f"{parts[most.id] / total:.0%} of the accesses to data go there."
    )
    return replace(trials, verdict=undecided("structure-unclear", text))


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


def doubt_steps(trials: Trials, derived: Sequence[Derived]) -> Trials:
    """No ``keep`` where a plain array may hold records that nothing declares: of these no layout was tried."""
    steps = {d.structure.name: d.steps for d in derived if d.steps > 1}
    if trials.verdict.action != "keep" or not steps:
        return trials
    name, step = next(iter(steps.items()))
    text = (
        f"`{name}` is declared as single numbers, and every access goes on in steps of {step}, as if {step} of them made a "
        f"record. No layout of such records was tried: declared as one (a structure of {step}, or an array of rows of "
        f"{step}) they would be."
    )
    return replace(trials, verdict=undecided("records-unclear", text))
