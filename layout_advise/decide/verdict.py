"""From measured ratios to change, keep or undecided: the rule of the design, section 3, and nothing else."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import msgspec

from layout_advise.decide.gain_words import doubt_words, fell_short, form_gains, gain_of, named, times
from layout_advise.decide.policy import DECIDE
from layout_advise.measure.measured import PROMISES, Measured, TermName, is_wide
from layout_advise.measure.policy import MEASURE
from layout_advise.mockup.timing.variants import WRITTEN
from layout_advise.reasons import Reason
from layout_advise.reports.model.candidate import Evidence, Interval
from layout_advise.reports.model.hotspot import Verdict
from layout_advise.reports.words.quantities import is_cpu_time, waits_much

LiveWish = Literal["auto", "always", "never"]
Ahead = Callable[[Measured, Measured], bool]
"""Whether the first candidate is shown to be faster than the second."""


def always(faster: Measured, slower: Measured) -> bool:
    """Any difference counts."""
    return True


@dataclass(frozen=True, slots=True)
class VerdictContext:
    """The context of a verdict: what holds for all candidates of a hotspot."""

    snapshot: Literal["criu", "fork"]
    identity_evidence: Evidence
    rules_apply: bool
    """A rule gave a layout to try; to begin with a cache line is no rule's."""
    allow_reassociation: bool = False
    live: LiveWish = "auto"
    """Whether candidates are tried in the running program: always, never, or where the snapshot is unlike it."""

    @property
    def bound(self) -> float:
        """The least gain that is advised: the lower end of an interval must exceed it, and for a ``keep`` all upper ends
        stay below. What noise there is, the intervals carry."""
        return DECIDE.smallest_gain(self.snapshot)


def undecided(reason: Reason, text: str) -> Verdict:
    """No answer, and why: ``reason`` is the stable word, ``text`` the sentence."""
    return Verdict("undecided", None, None, reason, f"Undecided: {text}")


def leader(candidates: Sequence[Measured], context: VerdictContext, ahead: Ahead = always) -> Measured | None:
    """The candidate that qualifies for a change and has the highest median; None where none qualifies. Of those that are as
    good, or not much less and not shown to be slower (``ahead``), the best one that has no blocks, and of a layout its plain
    variant: what is easier to write. That it was lucky is found out when it is measured again."""
    allowed: set[Evidence] = {"verified", "close"} if context.allow_reassociation else {"verified"}
    fit = [c for c in candidates if c.evidence in allowed and c.floor() > context.bound]
    best = max(fit, key=lambda c: (c.middle(), c.id), default=None)
    if best is None:
        return None
    wide = best.speedup is not None and is_wide(best.speedup)
    enough = (DECIDE.as_good_wide if wide else DECIDE.as_good) * best.middle()
    surely = DECIDE.as_good_wide * best.floor()
    nearly = DECIDE.as_good_wide * best.middle()
    as_good = [c for c in fit if not c.blocked and c.middle() >= enough and c.floor() >= surely]
    if best.blocked:
        as_good += [c for c in fit if not c.blocked and _worth_as_much(c, best)]
        least = best.floor() / MEASURE.wide  # few or unlike processes show no difference
        as_good += [c for c in fit if not c.blocked and c.middle() >= nearly and c.floor() >= least and not ahead(best, c)]
    best = max(as_good, key=lambda c: (c.middle(), c.id), default=best)
    same = [c for c in fit if c.layout == best.layout and c.middle() >= DECIDE.plain_enough * best.middle()]
    return min(same, key=lambda c: PROMISES.index(c.name.promise))


def saved(gain: float) -> float:
    """The part of the original's time that a gain saves: 0.5 of a gain of 2."""
    return 1.0 - 1.0 / gain if gain > 0 else -math.inf


def _worth_as_much(simpler: Measured, best: Measured) -> bool:
    """Whether ``best`` does not save clearly more of the original's time than what is simpler to write: neither by the
    medians nor by what is sure of both (decision 80)."""
    ends = ((simpler.middle(), best.middle()), (simpler.floor(), best.floor()))
    return all(b * DECIDE.most_of_gain <= a and saved(b) - saved(a) < DECIDE.worth_blocks for a, b in ends)


def more_by_blocks(winner: Measured, candidates: Sequence[Measured], bound: float) -> Measured | None:
    """Of the layouts in blocks that surely gain more than ``bound`` the one that gains most, where that is more than the
    ``winner``, which has none, gains."""
    if winner.blocked:
        return None
    more = [c for c in candidates if c.blocked and c.evidence in ("verified", winner.evidence) and c.floor() > bound]
    best = max(more, key=lambda c: (c.middle(), c.id), default=None)
    return best if best is not None and best.middle() > winner.middle() else None


def rounding_problem(context: VerdictContext) -> Verdict | None:
    """Why nothing is said where rounding differs, unless that is allowed."""
    if context.identity_evidence != "close" or context.allow_reassociation:
        return None
    return undecided(
        Reason.ROUNDING_ONLY,
        "sums that several threads add to come out differently rounded from run to run, in the original too; "
        "with --allow-reassociation that is taken for equal.",
    )


def identity_problem(context: VerdictContext) -> Verdict | None:
    """Why nothing can be said at all: the unchanged mock-up does not do what the original does."""
    if context.identity_evidence in ("verified", "close"):
        return None
    return undecided(
        Reason.IDENTITY_NOT_VERIFIED, "the unchanged mock-up does not reproduce the original, so no number counts."
    )


def decide(candidates: Sequence[Measured], context: VerdictContext, ahead: Ahead = always) -> Verdict:
    """The verdict before the winner is measured again: ``change`` here means "worth measuring again"."""
    rounding = rounding_problem(context)
    if rounding is not None:
        return rounding
    if not context.rules_apply and all(c.ceiling() is None for c in candidates):
        if context.identity_evidence in ("verified", "close"):
            return Verdict(
                "keep", None, None, Reason.NO_RULE_APPLIES, "Keep it: no layout rule applies to what the hotspot touches."
            )
        return undecided(
            Reason.IDENTITY_NOT_VERIFIED, "no layout rule applies, and the lifted hotspot could not be verified either."
        )
    problem = identity_problem(context)
    if problem is not None:
        return problem
    best = leader(candidates, context, ahead)
    if best is not None:
        return _change(best)
    return _keep_or_undecided(candidates, context)


def _change(winner: Measured) -> Verdict:
    claim = winner.claim
    assert claim is not None
    interval = Interval(claim.median, claim.lo, claim.hi, claim.restores)
    text = f"Change it: {gain_of(winner)}."
    return Verdict("change", winner.id, winner.claimed, Reason.MEASURED_GAIN, text, interval=interval)


def _keep_or_undecided(candidates: Sequence[Measured], context: VerdictContext) -> Verdict:
    known = [c for c in candidates if c.ceiling() is not None]
    layouts = {c.layout for c in known}
    unmeasured = [c for c in candidates if c.ceiling() is None and c.layout not in layouts]
    if not known:
        why = next((f": {c.reason}" for c in unmeasured if c.reason), "")
        return undecided(
            Reason.NOTHING_MEASURED, f"no candidate layout could be measured{why}; the ranking is by modelled traffic only."
        )
    near = reaching(known, context)
    if near:
        return _left_open(max(near, key=lambda c: (c.middle(), c.id)), candidates, context)
    best = max(known, key=lambda c: c.ceiling() or 0.0)
    tried = len(layouts)
    many = f"{tried} other layouts were measured and none gains"
    many = many if tried > 1 else "1 other layout was measured and does not gain"
    than = "speed of the unchanged layout" if best.form in WRITTEN else "unchanged mock-up's speed"
    than = than if best.told_by is best else "original's speed, by the program's own machine code in that layout"
    least = 100 * (context.bound - 1)
    none = "" if context.rules_apply else "no layout rule applies to what the hotspot touches; "
    text = (
        f"Keep it: {none}{many} {least:.0f} % ({'the best, ' if tried > 1 else ''}{named([best])}"
        f"{',' if tried > 1 else ''} stays below {best.ceiling():.2f} times the {than}).{_form(known, context)}"
    )
    text += f" {named(unmeasured)} could not be measured{_why(unmeasured)}." if unmeasured else ""
    interval = Interval(best.middle(), best.floor(), best.ceiling() or 0.0, None)
    return Verdict("keep", None, None, Reason.NO_GAIN, text, interval=interval, about=best.id)


def _why(unmeasured: Sequence[Measured]) -> str:
    return next((f" ({c.reason})" for c in unmeasured if c.reason), "")


def reaching(candidates: Iterable[Measured], context: VerdictContext) -> list[Measured]:
    """The candidates of which a gain is not excluded."""
    return [c for c in candidates if (top := c.ceiling()) is not None and top >= context.bound]


def noise_decides(results: Sequence[Measured], verdict: Verdict, context: VerdictContext) -> bool:
    """Tells whether an answer is open only as upper ends of doubts are of few processes: by the medians none gains, or, of
    what was dropped early, the medians are of few processes themselves."""
    reach = reaching(results, context) if verdict.action == "undecided" and verdict.doubt is not None else []
    return bool(reach) and all(_is_noise(one, context) for one in reach)


def _is_noise(one: Measured, context: VerdictContext) -> bool:
    top = one.likely_ceiling()
    few = one.speedup is not None and one.speedup.restores < MEASURE.fewest_again and one.speedup.median < context.bound
    return few or (top is not None and top < context.bound)


def _left_open(best: Measured, candidates: Sequence[Measured], context: VerdictContext) -> Verdict:
    """No answer: the interval of the best candidate, the term that leaves it open and what would narrow that."""
    lo, hi, doubt = best.floor(), best.ceiling() or 0.0, best.opening(context.bound)
    assert doubt is not None
    text = (
        f"{best.known} runs {times(lo)} to {times(hi)} times as fast{_than(best)}; a gain of "
        f"{100 * (context.bound - 1):.0f} % is neither sure nor excluded. {doubt_words(doubt)}"
    )
    told = undecided(DOUBT_REASONS[doubt.name], f"{text}{_form(candidates, context)}")
    return msgspec.structs.replace(told, interval=Interval(best.middle(), lo, hi, None), about=best.id, doubt=doubt.name)


def _than(candidate: Measured) -> str:
    return " as the unchanged layout" if candidate.form in WRITTEN else ""


def _form(candidates: Sequence[Measured], context: VerdictContext) -> str:
    """A sentence on what gains where the best layout is faster than the original, but not than the unchanged layout built
    in another way."""
    found = [c for c in candidates if c.form in WRITTEN and c.speedup is not None and c.speedup.lo > context.bound]
    best = max(found, key=lambda c: c.speedup.median if c.speedup else 0.0, default=None)
    return f" {form_gains(best)}" if best is not None else ""


DOUBT_REASONS: dict[TermName, Reason] = {
    "processes": Reason.WITHIN_NOISE,
    "live": Reason.WITHIN_NOISE,
    "form": Reason.MOCKUP_FORM,
    "rebuild": Reason.WITHIN_NOISE,
    "placement": Reason.PLACEMENT_DEPENDENT,
    "caches": Reason.NOT_IN_SITU,
    "program": Reason.NOT_IN_SITU,
    "apart": Reason.NOT_IN_SITU,
    "promises": Reason.COMPILER_DEPENDENT,
    "vectors": Reason.SCALAR_MOCKUPS,
    "indices": Reason.MOCKUP_FORM,
    "put-back": Reason.NOT_IN_SITU,
    "counting": Reason.NOT_IN_SITU,
    "machine": Reason.MOCKUP_FORM,
}
"""The word for an answer that a doubt leaves open."""


def confirm(first: Verdict, again: Measured, context: VerdictContext) -> Verdict:
    """The verdict after the winner was measured again in new restores: only those rounds count."""
    if again.floor() > context.bound and again.speedup is not None:
        return _change(again)
    told = undecided(
        Reason.NOT_CONFIRMED,
        f"the best layout, {again.known}, ran {first.gain or 0:.2f} times as fast at first, but not reliably above "
        f"{context.bound:.2f} when it was measured again in new processes{fell_short(again)}.",
    )
    open_to = Interval(again.middle(), again.floor(), again.ceiling() or 0.0, None)
    doubt = again.opening(context.bound)
    return msgspec.structs.replace(told, interval=open_to, about=again.id, doubt=doubt.name if doubt is not None else None)


def for_program(verdict: Verdict, share: float, waits: float = 0.0, processors: float = 1.0) -> Verdict:
    """The same verdict, its sentence completed by the gain of the whole program of which the hotspot is ``share``: rounded
    down, as the program cannot gain more than its hotspot. Of one that ``waits`` for a part of its time, or runs on
    several ``processors`` at once, that is one of its CPU time."""
    if verdict.action != "change" or not verdict.gain:
        return verdict
    gain = math.floor(amdahl(share, verdict.gain) * 100) / 100
    told = f" in CPU time, but it waits {waits:.0%} of the time that it takes" if waits_much(waits) else ""
    if not told and is_cpu_time(waits, processors):
        told = f" in CPU time, on {processors:.1f} processors at once"
    whole = f"; the whole program an estimated {gain:.2f} times ({share:.0%} of the samples){told}."
    return msgspec.structs.replace(verdict, text=verdict.text.removesuffix(".") + whole)


def amdahl(share: float, speedup: float) -> float:
    """Speedup of the whole program when the hotspot, ``share`` of it, becomes ``speedup`` times as fast."""
    return 1.0 / (1.0 - share + share / speedup)
