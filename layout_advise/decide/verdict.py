"""From measured ratios to change, keep or undecided: the rule of the design, section 3, and nothing else."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import msgspec

from layout_advise.decide.gain_words import FORMS, fell_short, form_gains, gain_of, named, times
from layout_advise.decide.policy import DECIDE
from layout_advise.measure.measured import PROMISES, Measured, is_wide
from layout_advise.measure.policy import MEASURE
from layout_advise.mockup.timing.statistics import Ratio
from layout_advise.reasons import Reason
from layout_advise.reports.model.candidate import Evidence
from layout_advise.reports.model.hotspot import Verdict

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
    identity: Ratio | None
    noise_hi: float
    rules_apply: bool
    allow_reassociation: bool = False

    @property
    def bound(self) -> float:
        """The bound that the lower ends of both intervals must exceed."""
        return max(self.noise_hi, DECIDE.smallest_gain(self.snapshot))


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
        least = best.floor() / MEASURE.wide  # few or unlike processes show no difference
        as_good += [c for c in fit if not c.blocked and c.middle() >= nearly and c.floor() >= least and not ahead(best, c)]
    best = max(as_good, key=lambda c: (c.middle(), c.id), default=best)
    same = [c for c in fit if c.layout == best.layout and c.middle() >= DECIDE.plain_enough * best.middle()]
    return min(same, key=lambda c: PROMISES.index(c.name.promise))


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
    """Why nothing can be said at all: the identity mock-up is not the original."""
    if context.identity_evidence not in ("verified", "close"):
        return undecided(
            Reason.IDENTITY_NOT_VERIFIED, "the unchanged mock-up does not reproduce the original, so no number counts."
        )
    ratio = context.identity
    if ratio is None:
        return undecided(Reason.IDENTITY_NOT_MEASURED, "the unchanged mock-up could not be timed.")
    lo, hi = DECIDE.identity_lo, DECIDE.identity_hi
    if not lo <= ratio.median <= hi:
        why = "its compiler does not reproduce this code well enough to predict a layout."
        if ratio.lo <= hi and ratio.hi >= lo:
            why = f"its interval, {ratio.lo:.2f} to {ratio.hi:.2f}, reaches into that. Run it again on a quieter machine."
        text = f"the unchanged mock-up takes {ratio.median:.2f} times the original's time (must be {lo} to {hi}): {why}"
        return undecided(Reason.IDENTITY_OFF, text)
    return None


def decide(candidates: Sequence[Measured], context: VerdictContext, ahead: Ahead = always) -> Verdict:
    """The verdict before the winner is measured again: ``change`` here means "worth measuring again"."""
    rounding = rounding_problem(context)
    if rounding is not None:
        return rounding
    if not context.rules_apply:
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
    if best is not None and best.speedup is not None:
        change = Verdict("change", best.id, best.claimed, Reason.MEASURED_GAIN, f"Change it: {gain_of(best)}.")
        return _doubt_form(change, best, candidates)
    return _keep_or_undecided(candidates, context)


def _keep_or_undecided(candidates: Sequence[Measured], context: VerdictContext) -> Verdict:
    unmeasured = [c for c in candidates if c.ceiling() is None]
    near = [c for c in candidates if _reaches(c, context)]
    if not candidates or (unmeasured and len(unmeasured) == len(candidates)):
        why = next((f": {c.reason}" for c in unmeasured if c.reason), "")
        return undecided(
            Reason.NOTHING_MEASURED, f"no candidate layout could be measured{why}; the ranking is by modelled traffic only."
        )
    above = [c for c in near if (c.ceiling() or 0.0) >= context.bound]
    if near:
        best = max(near, key=lambda c: (c.middle(), c.id))
        noise = f"the original against itself differs by up to {context.noise_hi - 1:.0%} on this machine now"
        text = f"{best.known} ran {_held(best)}, and {noise}: no gain is shown, none is excluded."
        if context.noise_hi <= DECIDE.smallest_gain(context.snapshot):
            least = f"a gain of {100 * (context.bound - 1):.0f} %, the least that is advised,"
            text = f"{best.known} ran {_held(best)}: {least} is neither sure nor excluded."
        if not above:
            text += " Run it again when it is quieter."
        return undecided(Reason.WITHIN_NOISE, f"{text}{_form(candidates, context)}")
    if unmeasured:
        return undecided(
            Reason.NOT_ALL_MEASURED, f"no measured layout is faster, but {named(unmeasured)} could not be measured."
        )
    best = max(candidates, key=lambda c: c.ceiling() or 0.0)
    tried = len({c.layout for c in candidates})
    many = f"{tried} other layouts were measured and none gains"
    many = many if tried > 1 else "1 other layout was measured and does not gain"
    over = best.over_identity is not None and best.over_identity.hi == best.ceiling()
    own = "speed of the unchanged layout" if best.form in FORMS else "unchanged mock-up's speed"
    than = own if over else "original's speed"
    return Verdict(
        "keep",
        None,
        None,
        Reason.NO_GAIN,
        f"Keep it: {many} {100 * (context.bound - 1):.0f} % ({'the best, ' if tried > 1 else ''}{named([best])}"
        f"{',' if tried > 1 else ''} stays below {best.ceiling():.2f} times the {than})."
        f"{_form(candidates, context)}",
    )


def _held(candidate: Measured) -> str:
    """``1.23 times as fast (1.17 to 1.30)``, of what is smaller: against the original or the unchanged mock-up."""
    ratios = [r for r in (candidate.speedup, candidate.over_identity, candidate.net) if r is not None]
    least = min(ratios, key=lambda r: r.median)
    what = " as the unchanged layout" if least is candidate.over_identity and candidate.form in FORMS else ""
    return f"{times(least.median)} times as fast{what} ({times(least.lo)} to {times(least.hi)})"


def _form(candidates: Sequence[Measured], context: VerdictContext) -> str:
    """A sentence on what gains where the best layout is faster than the original, but not than the unchanged layout built
    in another way."""
    found = [c for c in candidates if c.form in FORMS and c.speedup is not None and c.speedup.lo > context.bound]
    best = max(found, key=lambda c: c.speedup.median if c.speedup else 0.0, default=None)
    return f" {form_gains(best)}" if best is not None else ""


def _reaches(candidate: Measured, context: VerdictContext) -> bool:
    """Tells whether a gain is not excluded: the interval ends above the bound (on a machine too noisy for that to say much,
    above ``DECIDE.keep_bound``), or all of it lies above what would be a gain if the machine were quiet. Noise must not
    make a `keep` of a candidate that was faster in nearly all processes."""
    top = candidate.ceiling()
    bound = min(context.bound, DECIDE.keep_bound)
    return top is not None and (top >= bound or candidate.floor() > DECIDE.smallest_gain(context.snapshot))


def confirm(first: Verdict, again: Measured, context: VerdictContext) -> Verdict:
    """The verdict after the winner was measured again in new restores: only those rounds count."""
    if again.floor() > context.bound and again.speedup is not None:
        return Verdict(
            "change",
            again.id,
            again.claimed,
            Reason.MEASURED_GAIN,
            f"Change it: {gain_of(again)}.",
        )
    noisy = context.bound > DECIDE.smallest_gain(context.snapshot)
    why = " (by which the original differs from itself now)" if noisy else ""
    return undecided(
        Reason.NOT_CONFIRMED,
        f"the best layout, {again.known}, ran {first.gain or 0:.2f} times as fast at first, but not reliably above "
        f"{context.bound:.2f}{why} when it was measured again in new processes{fell_short(again)}.",
    )


def _doubt_form(change: Verdict, winner: Measured, results: Sequence[Measured]) -> Verdict:
    """No ``change`` to a layout that is slower than the original as soon as the compiler is promised that its arrays do not
    overlap. That takes nothing away from it: what gains is then the code that it happens to make of the loop (of a branch
    that is hard to predict, say), and a version written by hand may get the other one (``docs/decisions/0036``)."""
    if winner.name.promise != "plain":
        return change
    other = next((r for r in results if r.layout == winner.layout and r.name.promise == "restrict"), None)
    if other is None or other.speedup is None or other.speedup.hi >= 1.0:
        return change
    return undecided(
        Reason.COMPILER_DEPENDENT,
        f"{winner.known} ran {times(winner.claimed)} times as fast, and {times(other.speedup.median)} times with "
        "`restrict`, which tells the compiler more: it is the code it makes of the loop that gains, not the layout alone.",
    )


def for_program(verdict: Verdict, share: float) -> Verdict:
    """The same verdict, its sentence completed by the gain of the whole program of which the hotspot is ``share``: rounded
    down, as the program cannot gain more than its hotspot."""
    if verdict.action != "change" or not verdict.gain:
        return verdict
    gain = math.floor(amdahl(share, verdict.gain) * 100) / 100
    whole = f"; the whole program {gain:.2f} times by Amdahl's law."
    return msgspec.structs.replace(verdict, text=verdict.text.removesuffix(".") + whole)


def amdahl(share: float, speedup: float) -> float:
    """Speedup of the whole program when the hotspot, ``share`` of it, becomes ``speedup`` times as fast."""
    return 1.0 / (1.0 - share + share / speedup)
