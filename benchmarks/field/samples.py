"""Where the samples of the field's programs went: ``python benchmarks/field/samples.py [NAME ...]``.

For each program the part of its samples in regions with a measured answer, in regions that were measured and left open, in
regions to whose data no layout rule applies, in others, by reason, and in those that were not looked at.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Collection, Mapping
from pathlib import Path

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


def table(names: Collection[str]) -> list[str]:
    """A line for each run of these programs (of all, where none is named), and the mean of them, as Markdown."""
    found = {file.parent.name: parts(decode(file.read_bytes())) for file in sorted(RUNS.glob("*/*/report.json"))}
    found = {run: one for run, one in found.items() if not names or run.partition(".")[0] in names}
    kinds = sorted({kind for one in found.values() for kind in one})
    mean = {kind: sum(one.get(kind, 0.0) for one in found.values()) / len(found) for kind in kinds}
    lines = ["| program | where its samples are |", "|---|---|"]
    lines += [f"| {run} | {told(one)} |" for run, one in found.items()]
    return [*lines, f"| **mean** | {told(mean)} |"]


def told(found: Mapping[str, float]) -> str:
    """The parts in words, the greatest first."""
    ordered = sorted(found.items(), key=lambda item: -item[1])
    return ", ".join(f"{kind} {part:.0%}" for kind, part in ordered if part >= LEAST)


if __name__ == "__main__":
    print("\n".join(table(sys.argv[1:])))
