"""Where the samples of the field's programs went: ``python benchmarks/field/samples.py [NAME ...]``.

For each program the part of its samples in regions with a measured answer, in regions that were measured and left open, in
regions to whose data no layout rule applies, in others, by reason, and in those that were not looked at. Then how wide the
intervals of the answers are, and in which programs a layout ran in the program itself.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Collection, Mapping
from pathlib import Path
from statistics import median

from layout_advise.farm.rows import is_measured
from layout_advise.reports.model.contract import Report, decode
from layout_advise.reports.model.hotspot import HotspotReport

RUNS = Path(__file__).resolve().parent / ".results" / "runs"
NOT_SEEN = "not looked at"
LEAST = 0.005


def kind(region: HotspotReport) -> str:
    """What became of a region."""
    measured, reason = sum(one.speedup is not None for one in region.candidates), region.verdict.reason
    if is_measured(region.verdict.action, reason, measured):
        return "answered"
    return f"open, {reason}" if measured else reason


def parts(report: Report) -> dict[str, float]:
    """The parts of the samples by what became of the region in which they fell; regions that overlap count once."""
    found: defaultdict[str, float] = defaultdict(float)
    for region in report.hotspots:
        found[kind(region)] += region.share if region.alone is None else region.alone
    names = {name for region in report.hotspots for name in (region.symbol, region.name)}
    functions = {one.symbol: one.share for one in report.profile}
    for one in report.passed_over:
        if one.name not in names:  # of a passed-over region only what is in the function itself: loops overlap
            left = max(0.0, 1 - sum(found.values()))
            found[f"passed over, {one.reason}"] += min(left, functions.get(one.name, 0.0))
    found[NOT_SEEN] = max(0.0, 1 - sum(found.values()))
    return found


def table(given: Mapping[str, Report]) -> list[str]:
    """A line for each run, and the mean of them, as Markdown."""
    found = {run: parts(report) for run, report in given.items()}
    kinds = sorted({kind for one in found.values() for kind in one})
    mean = {kind: sum(one.get(kind, 0.0) for one in found.values()) / len(found) for kind in kinds}
    lines = ["| program | where its samples are |", "|---|---|"]
    lines += [f"| {run} | {told(one)} |" for run, one in found.items()]
    return [*lines, f"| **mean** | {told(mean)} |"]


def reports(names: Collection[str]) -> dict[str, Report]:
    """The report of each run of these programs (of all, where none is named)."""
    found = {file.parent.name: file for file in sorted(RUNS.glob("*/*/report.json"))}
    return {run: decode(file.read_bytes()) for run, file in found.items() if not names or run.partition(".")[0] in names}


def widths(found: Mapping[str, Report]) -> list[float]:
    """Of each region with a measured answer, the length of the interval told over its middle."""
    regions = [region for report in found.values() for region in report.hotspots if kind(region) == "answered"]
    intervals = [region.verdict.interval for region in regions if region.verdict.interval is not None]
    return [(one.hi - one.lo) / one.median for one in intervals]


def live(found: Mapping[str, Report]) -> list[str]:
    """The runs in which a layout ran in the program itself, which ended and printed as ordinarily."""
    return [
        run
        for run, report in found.items()
        if any(one.live is not None for region in report.hotspots for one in region.candidates)
        or any(p.trial is not None and p.trial.speedup is not None for p in (report.plan.structures if report.plan else ()))
    ]


def summed_up(found: Mapping[str, Report]) -> list[str]:
    """The intervals' width and the layouts that ran in the program, as Markdown."""
    wide, ran = widths(found), live(found)
    lines = list[str]()
    if wide:
        lines.append(
            f"Intervals of {len(wide)} regions with an answer: the median's length is {median(wide):.0%} of its middle."
        )
    return [*lines, f"A layout ran in the program itself, with the same output, in {len(ran)}: {', '.join(ran) or 'none'}."]


def told(found: Mapping[str, float]) -> str:
    """The parts in words, the greatest first."""
    ordered = sorted(found.items(), key=lambda item: -item[1])
    return ", ".join(f"{kind} {part:.0%}" for kind, part in ordered if part >= LEAST)


if __name__ == "__main__":
    known = reports(sys.argv[1:])
    print("\n".join([*table(known), "", *summed_up(known)]))
