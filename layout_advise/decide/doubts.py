"""Doubts: reasons against a verdict that the measured ratios alone would give."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from layout_advise.decide.gain_words import FORMS, form_gains, named, times
from layout_advise.decide.policy import DECIDE
from layout_advise.decide.verdict import undecided
from layout_advise.measure.measured import Measured
from layout_advise.measure.mode import Mode
from layout_advise.mockup.timing.ratios import identity_of, places_of
from layout_advise.mockup.timing.timings import Timings
from layout_advise.mockup.timing.variants import IDENTITY, IDENTITY_UNROLLED, ORIGINAL, SCALAR
from layout_advise.reasons import Reason
from layout_advise.reports.model.hotspot import Verdict

_HANGING = {True: "well its branches on data are predicted", False: "fast its short loop is fetched"}
"""What hangs on the place of code, by whether its way hangs on its data."""


def doubt_place(verdict: Verdict, timings: Timings, best: Measured, bound: float, mode: Mode, *, branches: bool) -> Verdict:
    """No ``keep`` where the best layout gains as soon as its code lies at another place (``docs/decisions/0037``), also over
    the unchanged layout in its fastest form; nor where the way hangs on the data (``branches``) and the unchanged layout
    itself takes much longer at one place than at another: what a layout does at any of them then says little."""
    over = (ORIGINAL, identity_of(timings, best.name))
    places = places_of(timings, best.name)
    ratios = [[r.median for o in over if (r := timings.ratio(o, n, mode)) is not None] for n in places]
    found = [min(medians) for medians in ratios if medians]
    same = [r.median for n in (IDENTITY, *IDENTITY.elsewhere) if (r := timings.ratio(n, ORIGINAL, mode)) is not None]
    if verdict.action == "keep" and branches and len(same) > 1 and max(same) > DECIDE.place_spread * min(same):
        text = (
            f"the unchanged mock-up takes {min(same):.2f} to {max(same):.2f} times the original's time depending on where "
            "its code lies, and with it how well its branches on data are predicted. No gain is shown, and none is excluded."
        )
        return undecided(Reason.PLACEMENT_DEPENDENT, text)
    if verdict.action != "keep" or max(found, default=0.0) < bound:
        return verdict
    text = (
        f"{best.id} runs {times(min(found))} to {times(max(found))} times as fast depending on where its code lies, "
        f"and with it how {_HANGING[branches]}. No gain is shown, and none is excluded."
    )
    return undecided(Reason.PLACEMENT_DEPENDENT, text)


def doubt_between(verdict: Verdict, first: Timings, results: Sequence[Measured], bound: float) -> Verdict:
    """No ``keep`` where the program's time lies between those with warm and with flushed caches, and a layout may gain with
    one of these (``docs/decisions/0034``)."""
    above = [replace(r, words="") for r in results if first.greater(r.name) >= bound]
    if verdict.action != "keep" or not first.between or not above:
        return verdict
    text = (
        "a call takes longer in the running program than with warm caches and less than with flushed ones, and "
        f"{named(above)} may gain with one of these only."
    )
    return undecided(Reason.NOT_IN_SITU, text)


def doubt_form(verdict: Verdict, again: Measured, bound: float, timings: Timings, mode: Mode) -> Verdict:
    """Says what it is that gains where the winner is faster than the original, but hardly faster than the unchanged layout
    built in another way (``docs/decisions/0039``), and which of these ways gains most."""
    if verdict.action == "change" or again.form not in FORMS or again.speedup is None or again.speedup.lo <= bound:
        return verdict
    own = {form: r.median for form in FORMS if (r := timings.ratio(ORIGINAL, form, mode)) is not None}
    best = max(own, key=lambda form: own[form], default=again.form)
    first = "that"
    if best != again.form and own[best] > DECIDE.further_form * own.get(again.form, 0.0):
        first = f"the unchanged layout {FORMS[best]}, which did {own[best]:.2f} times,"
    return undecided(Reason.LOOP_FORM, f"{form_gains(again)} Try {first} first; no gain of the layout is shown beyond it.")


def doubt_scalar(
    verdict: Verdict, timings: Timings, results: Sequence[Measured], mode: Mode, unrolled: bool = False
) -> Verdict:
    """No ``keep`` where the re-laid mock-ups may lose for being scalar only, or for the form they have (``unrolled``: the
    unchanged layout in that form is what ``timings`` has as the other identity).

    Mock-ups are written lane by lane, and the compiler finds the vectors again where the layout is unchanged. If the
    unchanged layout without vectors is clearly slower, and the best candidate nearer to it than to the original, its time
    says nothing against the layout.
    """
    cost = timings.ratio(SCALAR, ORIGINAL, mode)
    medians = [r.speedup.median for r in results if r.speedup is not None]
    form = timings.ratio(IDENTITY_UNROLLED, ORIGINAL, mode) if unrolled else None
    if verdict.action == "keep" and form is not None and form.median > DECIDE.scalar_limit:
        text = (
            "other layouts were measured in a form of the loop that is slower than the original's with the layout unchanged "
            f"(by a factor of {form.median:.1f}). No gain is shown, and none is excluded."
        )
        return undecided(Reason.SCALAR_MOCKUPS, text)
    if verdict.action != "keep" or cost is None or cost.median <= DECIDE.scalar_limit or not medians:
        return verdict
    best = max(medians)
    if best >= cost.median**-0.5:
        return verdict
    text = (
        "the original is vectorised; the mock-ups of other layouts are not, which alone costs a factor of "
        f"{cost.median:.1f} with the layout unchanged. No gain is shown, and none is excluded."
    )
    return undecided(Reason.SCALAR_MOCKUPS, text)
