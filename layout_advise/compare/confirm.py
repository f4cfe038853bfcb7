"""The report of a changed program, with what it owes to the change: which layout of the run before it has now, by how much
its regions became faster, and what is left."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from layout_advise.compare.arrangement import Recognised, recognised
from layout_advise.compare.dimensions import reordered
from layout_advise.compare.match import matched_regions
from layout_advise.compare.times import Faster, faster, mark, other_work
from layout_advise.reasons import TELLS_NOTHING, Reason
from layout_advise.reports.model.candidate import CandidateReport, Interval
from layout_advise.reports.model.contract import Report
from layout_advise.reports.model.hotspot import BaselineReport, HotspotReport, Verdict
from layout_advise.reports.words import hotspot_words, layout_words
from layout_advise.reports.words.quantities import listing


def confirmed(report: Report, baseline: Report, run: Path, applied: str | None = None) -> Report:
    """``report`` with what it is against ``baseline``, which lies in ``run``. ``applied`` is the layout of that run that
    ``apply`` wrote into the program. A region about which its own run tells nothing
    is kept where it has a layout of that run and is as fast as the best one there. ``over_regions`` stays as it is."""
    note = other_work(baseline, report)
    pairs = {id(new): old for old, new in matched_regions(baseline.hotspots, report.hotspots)}
    hotspots = tuple(
        _confirmed(pairs[id(one)], one, run.name, note, applied) if id(one) in pairs else one for one in report.hotspots
    )
    return replace(report, hotspots=hotspots)


def _confirmed(old: HotspotReport, new: HotspotReport, run: str, note: str, applied: str | None) -> HotspotReport:
    time = faster(old, new, note)
    best = _best(old)
    tried = _tried(old, best)
    found = recognised(tried, new.structures) or _in_another_order(tried, old, new)
    written = next((one for one in old.candidates if one.id == applied), None)
    if written is not None:  # its groups lie in one block, which has no type
        found = Recognised(written, ())
    left = _left(best, time)
    best_there = {_id(old.verdict.candidate), *map(_id, old.verdict.peers)}
    advised = found is not None and not found.rest and _id(found.candidate.id) in best_there
    known = BaselineReport(
        run=run,
        candidate=found.candidate.id if found else None,
        label=layout_words.families(found.candidate) if found else "",
        advised=advised,
        speedup=time.speedup,
        text=" ".join(_sentences(new, run, found, advised, time, best, left)),
        rest=found.rest if found else (),
        reason=time.why or None,
        left=left,
    )
    return replace(new, baseline=known, verdict=_verdict(new, known, time, best, left))


def _in_another_order(tried: Sequence[CandidateReport], old: HotspotReport, new: HotspotReport) -> Recognised | None:
    """The first of the layouts that plain arrays have whose dimensions stand in another order now."""
    found = [
        Recognised(one, rest)
        for one in tried
        if not (one.temporary or one.classes is not None or one.block)
        and (rest := reordered(one, old.structures, new.structures)) is not None
    ]
    return min(found, key=lambda one: len(one.rest), default=None)


def _tried(old: HotspotReport, best: CandidateReport | None) -> list[CandidateReport]:
    """The layouts of the earlier run, the advised one and those tied with it first."""
    order = [old.verdict.candidate, *old.verdict.peers, best.id if best else None]
    rank = {name: number for number, name in reversed(list(enumerate(order)))}
    return sorted(old.candidates, key=lambda one: (rank.get(one.id, len(order)), one.variant != "plain"))


def _best(old: HotspotReport) -> CandidateReport | None:
    """The layout that gained most in the earlier run, by the lower end of its interval."""
    measured = [one for one in old.candidates if one.evidence == "verified" and one.speedup is not None]
    by_id = {one.id: one for one in measured}
    if old.verdict.candidate in by_id:
        return by_id[old.verdict.candidate]
    return max(measured, key=lambda one: one.speedup.lo if one.speedup else 0.0, default=None)


def _left(best: CandidateReport | None, time: Faster) -> Interval | None:
    """The gain of the best layout of the earlier run over the present one; None where it is not shown to gain."""
    gain = best.predicted if best is not None else None
    if gain is None or time.speedup is None:
        return None
    got = time.speedup
    left = Interval(gain.median / got.median, gain.lo / got.hi, gain.hi / got.lo)
    return left if mark(left) == "+" else None


def _sentences(
    new: HotspotReport,
    run: str,
    found: Recognised | None,
    advised: bool,
    time: Faster,
    best: CandidateReport | None,
    left: Interval | None,
) -> list[str]:
    said = []
    if found is not None:
        what = f"the layout advised in {run}" if advised else f"a layout tried in {run}"
        where = "in the blocks too" if found.candidate.block else "between them"
        rest = f", but with {listing(found.rest)} {where}" if found.rest else ""
        said.append(f"This is {what} ({found.candidate.id}: {layout_words.families(found.candidate)}){rest}.")
    else:
        said.append(f"This is none of the layouts tried in {run}.")
    name = hotspot_words.short_name(new)
    if time.speedup is None:
        said.append(f"Not compared with the run before: {time.why}.")
    else:
        span = f"{time.speedup.median:.2f} times as fast as there ({time.speedup.lo:.2f} to {time.speedup.hi:.2f})"
        same = ", which is no difference" if time.mark == "~" else ""
        said.append(f"{name} runs {span}{same}.")
    if left is not None and best is not None and best.speedup is not None:
        gain = f"{left.median:.2f} times more ({left.lo:.2f} to {left.hi:.2f})"
        said.append(f"{best.id} there ({layout_words.families(best)}) gained {gain}.")
    elif best is not None and time.speedup is not None:
        said.append("No layout measured there is shown to gain more.")
    return said


def _verdict(
    new: HotspotReport, known: BaselineReport, time: Faster, best: CandidateReport | None, left: Interval | None
) -> Verdict:
    """The region's own verdict, where its run tells something; else ``keep``, where the earlier run answers for it."""
    verdict = new.verdict
    silent = verdict.action == "undecided" and verdict.reason in TELLS_NOTHING
    answered = known.candidate is not None and best is not None and time.mark == "+" and left is None
    if silent and answered:
        text = f"Keep it: {known.text[0].lower()}{known.text[1:]}"
        return replace(verdict, action="keep", reason=str(Reason.ADVISED_LAYOUT), text=text)
    return replace(verdict, text=f"{verdict.text} {known.text}")


def _id(candidate: str | None) -> str | None:
    """A layout's id, whichever its variant."""
    return candidate.split("-")[0] if candidate else None
