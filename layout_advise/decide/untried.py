"""What was not tried, told beside a measured ``keep``: objects apart, elements picked by an index, undeclared records."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType

import msgspec

from layout_advise import machine
from layout_advise.decide.policy import DECIDE
from layout_advise.decide.verdict import undecided
from layout_advise.layoutalgebra.derive.accesses import Derived
from layout_advise.layoutalgebra.derive.derive import plain_reason
from layout_advise.layoutalgebra.derive.structure import Candidate, Structure
from layout_advise.layoutalgebra.explore.families import HALF
from layout_advise.layoutalgebra.explore.relayout import ALIGN
from layout_advise.observe.observe import Observation, density
from layout_advise.observe.other_kinds import Others, blocks_of
from layout_advise.reasons import Reason
from layout_advise.reports.model.hotspot import Verdict
from layout_advise.reports.words.hotspot_words import unsaid

NO_OTHER = "the rules gave no other layout of it"
"""Of a structure to which rules may apply, and did not."""


def with_untried(
    verdict: Verdict, seen: Observation, tried: Collection[Candidate], unfit: Mapping[str, str] = MappingProxyType({})
) -> Verdict:
    """``verdict``, where it is a ``keep`` with a sentence on each part of what the call touches that was not tried.
    ``tried`` are the candidates that were measured, ``unfit`` structures for whose layouts the code cannot be re-indexed and
    why. That plain arrays gain nothing by another start says nothing of what rules could arrange."""
    only = bool(tried) and all(ALIGN in one.families for one in tried)
    verdict = _left_to_rules(verdict) if only and verdict.action == "undecided" else verdict
    starts = only and verdict.action == "keep"
    asked = msgspec.structs.replace(verdict, reason=Reason.NO_RULE_APPLIES) if starts else verdict
    told = doubt_own(doubt_unknown(doubt_steps(doubt_sparse(asked, seen, tried), seen.derived), seen), seen)
    told = with_plain_reasons(doubt_unfit(doubt_scattered(told, seen), seen, unfit), seen)
    return msgspec.structs.replace(told, reason=verdict.reason) if starts and told.action == "keep" else told


def _left_to_rules(verdict: Verdict) -> Verdict:
    """The verdict that no rule applies; what another start of the arrays may gain or not is told, and left at that."""
    if verdict.reason in (Reason.IDENTITY_NOT_VERIFIED, Reason.NOTHING_CHANGED, Reason.ROUNDING_ONLY):
        return verdict
    text = f"Keep it: no layout rule applies to what the hotspot touches; {unsaid(verdict.text)}"
    return msgspec.structs.replace(verdict, action="keep", reason=Reason.NO_RULE_APPLIES, text=text, doubt=None)


def with_plain_reasons(verdict: Verdict, seen: Observation) -> Verdict:
    """A verdict that no rule applies, with why not for each structure that has more than a hundredth of the accesses."""
    if verdict.reason != Reason.NO_RULE_APPLIES:
        return verdict
    parts = accesses_of(seen)
    total = max(sum(parts.values()), 1)
    found = sorted((d.structure for d in seen.derived), key=lambda s: -parts[s.id])
    told = [(s, plain_reason(s) or NO_OTHER) for s in found if parts[s.id] > DECIDE.told_accesses * total]
    if not told:
        return verdict
    reasons = "; ".join(f"`{s.name}` ({parts[s.id] / total:.0%} of the accesses): {why}" for s, why in told)
    return msgspec.structs.replace(verdict, text=f"{verdict.text} {reasons}.")


def _beside(verdict: Verdict, text: str, reason: Reason = Reason.NOT_ALL_TRIED) -> Verdict:
    """``verdict`` with a sentence on what was not tried; where nothing was measured, that leaves it undecided."""
    if verdict.reason == Reason.NO_RULE_APPLIES:
        but = " but with another start" if verdict.about is not None else ""
        return undecided(reason, f"no layout was measured{but}. Not tried: {text}")
    return msgspec.structs.replace(verdict, text=f"{verdict.text} Not tried: {text}")


def doubt_unfit(verdict: Verdict, seen: Observation, unfit: Mapping[str, str]) -> Verdict:
    """Tells of structures with other layouts by the rules, which the code could not be re-indexed for."""
    parts = accesses_of(seen)
    found = sorted((s for s in seen.structures if s.id in unfit and matters(seen, s)), key=lambda s: -parts[s.id])
    if verdict.action != "keep" or not found:
        return verdict
    total = max(sum(parts.values()), 1)
    each = (f"`{s.name}` ({parts[s.id] / total:.0%} of the accesses): {unfit[s.id]}" for s in found)
    return _beside(verdict, f"any layout of {'; '.join(each)}.")


def doubt_scattered(verdict: Verdict, seen: Observation) -> Verdict:
    """Tells of objects that were allocated one by one and are reached through pointers."""
    if verdict.action != "keep" or not seen.scattered:
        return verdict
    why = f" ({'; '.join(seen.refused)})" if seen.refused else ""
    text = f"storing the contents of at least {seen.scattered} blocks of the heap that are reached through pointers together"
    return _beside(verdict, f"{text}{why}.", Reason.SCATTERED_OBJECTS)


def doubt_sparse(verdict: Verdict, seen: Observation, tried: Collection[Candidate]) -> Verdict:
    """Tells of elements that an index picks out: storing these together is tried only where they are one of each few
    neighbours, and it can be the best layout. Elements that fill more than half of their lines are no such choice."""
    chosen = {r.structure.id for c in tried for r in c.relayouts if r.chosen is not None}
    rare = [d.structure for d in seen.derived if density(seen, d) <= HALF and matters(seen, d.structure)]
    sparse = [s.name for s in rare if s.id not in chosen and seen.filled.get(s.id, 0.0) <= HALF]
    if verdict.action != "keep" or not sparse:
        return verdict
    return _beside(verdict, f"storing the elements of {', '.join(sparse)} that the index picks out together.")


def matters(seen: Observation, structure: Structure) -> bool:
    """Tells whether another layout of a structure could gain anything to speak of: it gets more than a hundredth of the
    accesses, and no first cache holds all of it."""
    parts = accesses_of(seen)
    share = parts[structure.id] / max(sum(parts.values()), 1)
    return share > DECIDE.told_accesses and structure.bytes > machine.caches().get((1, "Data"), 0)


def doubt_unknown(verdict: Verdict, seen: Observation) -> Verdict:
    """Tells of what the hotspot accesses much and could not be recognised."""
    parts = accesses_of(seen)
    total = sum(parts.values())
    unknown = [
        d.structure for d in seen.derived if d.structure.inexact and parts[d.structure.id] >= DECIDE.unknown_accesses * total
    ]
    if verdict.action != "keep" or not total or not unknown:
        return verdict
    most = max(unknown, key=lambda s: parts[s.id])
    text = (
        f"any layout of `{most.name}`, where {parts[most.id] / total:.0%} of the accesses to data go: what it holds could "
        f"not be recognised ({most.inexact})."
    )
    return _beside(verdict, text, Reason.STRUCTURE_UNCLEAR)


def doubt_own(verdict: Verdict, seen: Observation) -> Verdict:
    """Tells of memory that the call allocates itself, where it accesses much of it: at the call's begin there is nothing in
    another layout to give it. A loop that begins later may have that memory as it has any other."""
    own = own_part(seen)
    if verdict.action != "keep" or not own or own < DECIDE.unknown_accesses:
        return verdict
    text = f"any layout of the memory that the call allocates itself, where {own:.0%} of the accesses to data go."
    return _beside(verdict, text, Reason.OWN_MEMORY)


def own_part(seen: Observation) -> float:
    """The part of the accesses to data that go to memory which the call allocates itself; what goes to one of many places,
    as to the list of each literal, counts in equal parts for them: a few are new in each call."""
    objects, counts = seen.attribution.objects if seen.attribution is not None else (), _counts(seen, in_parts=True)
    own = sum(n for n, o in zip(counts, objects, strict=True) if o.life == "born")
    return own / (own + sum(_of_structures(seen, counts).values())) if own else 0.0


def is_mostly_own(seen: Observation) -> bool:
    """Tells whether most of what the call works on it allocates itself: a loop in it has that memory as it has any other."""
    return own_part(seen) >= DECIDE.mostly_own


def without_hope(seen: Observation, candidates: Collection[Candidate], *, loops: bool = False) -> Verdict | None:
    """Why measuring could tell nothing of the layout: no rule gives another one to try, and what much of the data is was not
    recognised, or the call's own; or most of it is the call's own, where its ``loops`` may be studied, before which it is
    there. None where it could."""
    if not (loops and is_mostly_own(seen)) and any(ALIGN not in one.families for one in candidates):
        return None
    verdict = doubt_own(doubt_unknown(Verdict("keep", None, None, Reason.NO_RULE_APPLIES, ""), seen), seen)
    return verdict if verdict.action == "undecided" else None


def accesses_of(seen: Observation) -> dict[str, int]:
    """By structure how often the traced call accesses it; what goes to several places counts in full for each of them."""
    return _of_structures(seen, _counts(seen))


def _of_structures(seen: Observation, counts: Sequence[int]) -> dict[str, int]:
    """By structure the accesses, of which objects have these ``counts``."""
    found = {d.structure.id: 0 for d in seen.derived}
    if seen.attribution is None:
        return found
    for d in seen.derived:
        within = (k for k, o in enumerate(seen.attribution.objects) if o.base <= d.structure.base < o.end)
        found[d.structure.id] = sum(counts[k] for k in within)
    return found


def _counts(seen: Observation, *, in_parts: bool = False) -> list[int]:
    """By object of the attribution how often the traced call accesses it; what goes to one of several, of which it is not
    known how often to which, counts in full for each of them, or ``in_parts``."""
    if seen.attribution is None:
        return []
    streams = (seen.team or seen.trace).streams
    counts = [0] * len(seen.attribution.objects)
    for stream, touches in zip(streams, seen.attribution.touches, strict=True):
        open_ = sum(touch.accesses is None for touch in touches)
        known = sum(touch.accesses or 0 for touch in touches)
        all_ = stream.count if stream else 0
        each = max(0, all_ - known) // max(open_, 1) if in_parts else all_
        for touch in touches:
            counts[touch.object] += touch.accesses if touch.accesses is not None else each
    return counts


def doubt_steps(verdict: Verdict, derived: Sequence[Derived]) -> Verdict:
    """Tells of plain arrays that may hold records which nothing declares."""
    steps = {d.structure.name: d.steps for d in derived if d.steps > 1}
    if verdict.action != "keep" or not steps:
        return verdict
    name, step = next(iter(steps.items()))
    text = (
        f"records of {step} numbers in `{name}`, which is declared as single numbers and accessed in steps of {step} "
        f"(declared as a structure of {step}, or an array of rows of {step}, they would be)."
    )
    return _beside(verdict, text, Reason.RECORDS_UNCLEAR)


def with_untried_kinds(verdict: Verdict, seen: Observation, others: Others) -> Verdict:
    """Tells of structures that only calls of other kinds use."""
    known = blocks_of(seen.structures)
    found = [s for one in others.tried for s in one.seen.structures if plain_reason(s) is None]
    names = dict.fromkeys(s.name for s in found if not blocks_of((s,)) <= known)
    if verdict.action != "keep" or not names:
        return verdict
    return _beside(verdict, f"any layout of {', '.join(names)}, which only calls of another kind use.")


def not_all_kinds(verdict: Verdict) -> Verdict:
    """Tells that calls with much of the hotspot's time were not measured; a ``change`` counts them as unchanged."""
    if verdict.action == "undecided":
        return verdict
    return _beside(verdict, "calls with a good part of the hotspot's time, counted as unchanged.")
