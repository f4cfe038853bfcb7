"""From measured ratios to change, keep or undecided: the rule of the design, section 3, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import msgspec

from layout_advise.mockup.statistics import Ratio
from layout_advise.reports.candidatemodel import Evidence
from layout_advise.reports.hotspotmodel import Verdict

SMALLEST_GAIN = {"criu": 1.05, "fork": 1.10}
KEEP_BOUND = 1.15
"""A layout that may gain more is no reason to keep the present one, however noisy the machine is."""
IDENTITY_RANGE = (0.9, 1.1)
IN_SITU_TOLERANCE = 0.15
BACK_TO_BACK = 0.1
"""Where so little of a call's time passes between calls, hardly anything else gets into the caches."""
ALIKE = 0.05
"""Times that differ by less tell nothing about what was in the caches."""
WIDE = 1.5
"""An interval whose upper end is that many times its lower one does not know the gain: its lower end is claimed."""
PLAIN_ENOUGH = 0.98
"""A variant that promises the compiler more is advised only when the plain one has less than this part of its gain."""
AS_GOOD = (0.97, 0.85)
"""Likewise blocks, and where the interval of their gain is wide."""
SHORT_CALL_NS = 20_000
FEWEST_CALLS = 3

Mode = Literal["steady", "cold"]

VARIANTS = ("plain", "restrict", "simd")
"""In the order of what they ask of the user."""

ASKED = {
    "plain": "",
    "restrict": ", with its arrays declared `restrict`,",
    "simd": ", with its arrays declared `restrict` and its independent loops written for SIMD,",
}


ALONE = {"plain": "its loops in this form", "restrict": "`restrict`", "simd": "`restrict` and SIMD"}
TOLD = 1.05
"""What a variant gains with the layout unchanged is told from here on."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What the verdict needs to know of a candidate; ratios of the mode that was chosen. ``net`` is the speedup with
    the conversion of a temporary layout taken in (None for permanent ones); ``reason``: why there are no ratios."""

    id: str
    evidence: Evidence
    speedup: Ratio | None
    over_identity: Ratio | None
    net: Ratio | None = None
    title: str = ""
    reason: str = ""
    blocked: bool = False
    """Whether the layout is one of blocks (AoSoA): every index becomes two."""

    @property
    def layout(self) -> str:
        """The id without the variant: ``c1`` of ``c1-restrict``."""
        return self.id.partition("-")[0]

    @property
    def variant(self) -> str:
        """``plain``, ``restrict`` or ``simd``."""
        return self.id.partition("-")[2] or "plain"

    @property
    def counted(self) -> Ratio | None:
        """The gain that is claimed: net of the conversion for a temporary layout."""
        return self.net or self.speedup

    @property
    def claimed(self) -> float:
        """The gain as it is told: the lower end where the interval is wide."""
        assert self.counted is not None
        return self.counted.lo if is_wide(self.counted) else self.counted.median

    def floor(self) -> float:
        """The smallest of the lower bounds that a change must have above the bound."""
        bounds = [r.lo for r in (self.speedup, self.over_identity, self.net) if r is not None]
        return min(bounds) if self.speedup and self.over_identity else 0.0

    def middle(self) -> float:
        """The smallest of the medians."""
        return min((r.median for r in (self.speedup, self.over_identity, self.net) if r is not None), default=0.0)

    def ceiling(self) -> float | None:
        """The smallest of the upper bounds: below the bound the candidate is out. None when it was not measured."""
        bounds = [r.hi for r in (self.speedup, self.over_identity, self.net) if r is not None]
        return min(bounds) if self.speedup and self.over_identity else None


@dataclass(frozen=True, slots=True)
class Context:
    """What holds for all candidates of a hotspot."""

    snapshot: Literal["criu", "fork"]
    identity_evidence: Evidence
    identity: Ratio | None
    noise_hi: float
    rules_apply: bool
    allow_reassociation: bool = False

    @property
    def bound(self) -> float:
        """What the lower ends of both intervals must exceed."""
        return max(self.noise_hi, SMALLEST_GAIN[self.snapshot])


def choose_mode(
    in_situ: float | None, steady: float | None, cold: float | None, between: float | None = None
) -> Mode | None:
    """Whichever of steady and cold is nearer to the running program; None when neither is within 15 %.

    A hotspot whose data no cache holds takes the same time in both, but one with less data does not: where both are near,
    what passes ``between`` two calls in the program decides, if that is known (``docs/decisions/0034``).
    """
    if not in_situ:
        return None
    errors: dict[Mode, float] = {}
    if steady:
        errors["steady"] = abs(steady / in_situ - 1)
    if cold:
        errors["cold"] = abs(cold / in_situ - 1)
    if not errors:
        return None
    if between is not None and steady and cold and max(errors.values()) <= IN_SITU_TOLERANCE:
        if between <= BACK_TO_BACK * in_situ:
            return "steady"
        if abs(cold / steady - 1) <= ALIKE:
            return "cold"
    best = min(errors, key=lambda mode: errors[mode])
    return best if errors[best] <= IN_SITU_TOLERANCE else None


def undecided(reason: str, text: str) -> Verdict:
    """No answer, and why: ``reason`` is the stable word, ``text`` the sentence."""
    return Verdict("undecided", None, None, reason, f"Undecided: {text}")


def leader(candidates: Sequence[Measured], context: Context) -> Measured | None:
    """The candidate that qualifies for a change and has the highest median; None where none qualifies. Of those that are as
    good the best one that has no blocks, and of a layout its plain variant: what is easier to write. That it was lucky is
    found out when it is measured again."""
    allowed: set[Evidence] = {"verified", "close"} if context.allow_reassociation else {"verified"}
    fit = [c for c in candidates if c.evidence in allowed and c.floor() > context.bound]
    best = max(fit, key=lambda c: (c.middle(), c.id), default=None)
    if best is None:
        return None
    enough = AS_GOOD[best.speedup is not None and is_wide(best.speedup)] * best.middle()
    surely = AS_GOOD[1] * best.floor()
    as_good = [c for c in fit if not c.blocked and c.middle() >= enough and c.floor() >= surely]
    best = max(as_good, key=lambda c: (c.middle(), c.id), default=best)
    same = [c for c in fit if c.layout == best.layout and c.middle() >= PLAIN_ENOUGH * best.middle()]
    return min(same, key=lambda c: VARIANTS.index(c.variant))


def rounding_problem(context: Context) -> Verdict | None:
    """Why nothing is said where rounding differs, unless that is allowed."""
    if context.identity_evidence != "close" or context.allow_reassociation:
        return None
    return undecided(
        "rounding-only",
        "sums that several threads add to come out differently rounded from run to run, in the original too; "
        "with --allow-reassociation that is taken for equal.",
    )


def identity_problem(context: Context) -> Verdict | None:
    """Why nothing can be said at all: the identity mock-up is not the original."""
    if context.identity_evidence not in ("verified", "close"):
        return undecided(
            "identity-not-verified", "the unchanged mock-up does not reproduce the original, so no number counts."
        )
    ratio = context.identity
    if ratio is None:
        return undecided("identity-not-measured", "the unchanged mock-up could not be timed.")
    lo, hi = IDENTITY_RANGE
    if not lo <= ratio.median <= hi:
        why = "its compiler does not reproduce this code well enough to predict a layout."
        if ratio.lo <= hi and ratio.hi >= lo:
            why = f"its interval, {ratio.lo:.2f} to {ratio.hi:.2f}, reaches into that. Run it again on a quieter machine."
        text = f"the unchanged mock-up takes {ratio.median:.2f} times the original's time (must be {lo} to {hi}): {why}"
        return undecided("identity-off", text)
    return None


def decide(candidates: Sequence[Measured], context: Context) -> Verdict:
    """The verdict before the winner is measured again: ``change`` here means "worth measuring again"."""
    rounding = rounding_problem(context)
    if rounding is not None:
        return rounding
    if not context.rules_apply:
        if context.identity_evidence in ("verified", "close"):
            return Verdict(
                "keep", None, None, "no-rule-applies", "Keep it: no layout rule applies to what the hotspot touches."
            )
        return undecided(
            "identity-not-verified", "no layout rule applies, and the lifted hotspot could not be verified either."
        )
    problem = identity_problem(context)
    if problem is not None:
        return problem
    best = leader(candidates, context)
    if best is not None and best.speedup is not None:
        return Verdict(
            "change",
            best.id,
            best.claimed,
            "measured-gain",
            f"Change it: {_gain(best)}.",
        )
    return _keep_or_undecided(candidates, context)


def _keep_or_undecided(candidates: Sequence[Measured], context: Context) -> Verdict:
    unmeasured = [c for c in candidates if c.ceiling() is None]
    near = [c for c in candidates if _reaches(c, context)]
    if not candidates or (unmeasured and len(unmeasured) == len(candidates)):
        why = next((f": {c.reason}" for c in unmeasured if c.reason), "")
        return undecided(
            "nothing-measured", f"no candidate layout could be measured{why}; the ranking is by modelled traffic only."
        )
    above = [c for c in near if (c.ceiling() or 0.0) >= context.bound]
    if near and not above:
        return undecided(
            "within-noise",
            f"{_named(near)} may be faster than the original, but the original against itself differs by up to "
            f"{context.noise_hi - 1:.0%} on this machine now: no gain is shown, none is excluded. "
            "Run it again when it is quieter.",
        )
    if near:
        return undecided(
            "within-noise",
            f"the measurements of {_named(above)} reach above {context.bound:.2f} times the original's speed, below which a "
            "difference may be noise here, but not with all of their intervals: no gain is shown, none is excluded.",
        )
    if unmeasured:
        return undecided(
            "not-all-measured", f"no measured layout is faster, but {_named(unmeasured)} could not be measured."
        )
    best = max(candidates, key=lambda c: c.ceiling() or 0.0)
    return Verdict(
        "keep",
        None,
        None,
        "no-gain",
        f"Keep it: {len({c.id.split('-')[0] for c in candidates})} other layouts were measured and none gains "
        f"{100 * (context.bound - 1):.0f} % (the best, {_named([best])}, stays below {best.ceiling():.2f} times the "
        "original's speed).",
    )


def _reaches(candidate: Measured, context: Context) -> bool:
    """Whether a gain is not excluded: the interval ends above the bound (on a machine too noisy for that to say much,
    above ``KEEP_BOUND``), or all of it lies above what would be a gain if the machine were quiet. Noise must not make a
    `keep` of a candidate that was faster in nearly all processes."""
    top = candidate.ceiling()
    bound = min(context.bound, KEEP_BOUND)
    return top is not None and (top >= bound or candidate.floor() > SMALLEST_GAIN[context.snapshot])


def confirm(first: Verdict, again: Measured, context: Context) -> Verdict:
    """The verdict after the winner was measured again in new restores: only those rounds count."""
    if again.floor() > context.bound and again.speedup is not None:
        return Verdict(
            "change",
            again.id,
            again.claimed,
            "measured-gain",
            f"Change it: {_gain(again)}.",
        )
    return undecided(
        "not-confirmed",
        f"the best layout ({first.candidate}) ran {first.gain or 0:.2f} times as fast at first, but not reliably above "
        f"{context.bound:.2f} when it was measured again in new processes{_fell_short(again)}.",
    )


def _fell_short(again: Measured) -> str:
    """The lowest of what had to exceed the bound."""
    if again.counted is None:
        return ""
    lowest, what = again.counted, ""
    if again.over_identity is not None and again.over_identity.lo < lowest.lo:
        lowest, what = again.over_identity, " the unchanged mock-up's speed"
    return f", only {lowest.median:.2f} times{what} ({_interval(lowest)})"


def for_program(verdict: Verdict, share: float) -> Verdict:
    """The same verdict, its sentence completed by the gain of the whole program of which the hotspot is ``share``."""
    if verdict.action != "change" or not verdict.gain:
        return verdict
    whole = f"; the whole program {amdahl(share, verdict.gain):.1f} times by Amdahl's law."
    return msgspec.structs.replace(verdict, text=verdict.text.removesuffix(".") + whole)


def amdahl(share: float, speedup: float) -> float:
    """Speedup of the whole program when the hotspot, ``share`` of it, becomes ``speedup`` times as fast."""
    return 1.0 / (1.0 - share + share / speedup)


def _gain(winner: Measured) -> str:
    """``store ... : step runs 4.9 times as fast (95 % interval 3.9 to 5.1, 9 processes)``; ``at least 3.7 times as fast``
    where the interval is wide."""
    assert winner.counted is not None
    net = ", conversion before and after each call included" if winner.net is not None else ""
    least = "at least " if is_wide(winner.counted) else ""
    gain = f"{least}{times(winner.claimed)} times as fast ({_interval(winner.counted)}{net})"
    return f"{winner.title or winner.id}{ASKED[winner.variant]} runs {gain}{_unchanged(winner)}"


def is_wide(ratio: Ratio) -> bool:
    """Whether the machine was too noisy for the median to say much."""
    return ratio.hi >= WIDE * ratio.lo


def _unchanged(winner: Measured) -> str:
    """What of the gain does not need the layout: the same variant of the unchanged one over the original."""
    if winner.speedup is None or winner.over_identity is None or winner.net is not None:
        return ""
    alone = winner.speedup.median / winner.over_identity.median
    if alone < TOLD:
        return ""
    own = f"{times(alone)} times with {ALONE[winner.variant]} and the layout unchanged"
    of_that = f"of its median, {times(winner.speedup.median)} times," if is_wide(winner.speedup) else "of that"
    return f", {of_that} {own}, {times(winner.over_identity.median)} times by the layout"


def _interval(ratio: Ratio) -> str:
    return f"95 % interval {times(ratio.lo)} to {times(ratio.hi)}, {ratio.restores} processes"


def times(value: float) -> str:
    """One digit after the point where that says enough, two near 1."""
    return f"{value:.1f}" if value >= 2 else f"{value:.2f}"


def _named(candidates: Sequence[Measured]) -> str:
    """Ids without their variants: ``c1, c2 and 3 more``."""
    ids = list(dict.fromkeys(c.layout for c in candidates))
    return ", ".join(ids) if len(ids) <= 3 else f"{', '.join(ids[:3])} and {len(ids) - 3} more"
