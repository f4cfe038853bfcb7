"""The layouts that ran in the field's programs themselves: ``python benchmarks/field/tried.py DIR``.

``DIR`` is the folder of a farm with ``--live`` among its options, or one of several of them:

    layout-advise farm benchmarks/field/field.toml -o DIR --only NAMES "--options=--live --budget 45 --regions 1"

For each program the layout of which most calls ran so, those left to the original and why, how often data were copied, and
the CPU time of the whole program, with all that a trial does at each call. Of programs in which none ran it is told why.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from layout_advise.reports.model.candidate import CandidateReport, LiveReport
from layout_advise.reports.model.contract import Report, decode

HEAD = "| program | layout | calls so | left to the original | copies | of the time | CPU seconds | why not timed |"


def best(report: Report) -> CandidateReport | None:
    """The candidate of which most calls ran in the program; None where none did."""
    tried = [
        (one.live.calls, one.id, one) for region in report.hotspots for one in region.candidates if one.live is not None
    ]
    return max(tried, key=lambda row: row[:2])[2] if tried else None


def of_the_time(live: LiveReport) -> str:
    """The time of a call over that of the original, where calls were timed."""
    gain = live.speedup
    return f"{1 / gain.median:.2f} ({1 / gain.hi:.2f}–{1 / gain.lo:.2f})" if gain is not None else "–"


def row(run: str, report: Report) -> str:
    """A line of the table."""
    one = best(report)
    if one is None or one.live is None:
        why = next((region.no_live for region in report.hotspots if region.no_live), "nothing was to be tried")
        return f"| {run} | – | 0 | | | | | {why} |"
    live = one.live
    left = [f"{live.stopped:,} way not taken"] if live.stopped else []
    left += [f"{live.faulted:,} other memory"] if live.faulted else []
    left += ["time over"] if live.ended else []
    why = f" ({', '.join(left)})" if left else ""
    seconds = f"{live.seconds_original:.2f} → {live.seconds_layout:.2f}"
    return (
        f"| {run} | {', '.join(one.families)} | {live.calls:,} | {live.passed:,}{why} | {live.conversions:,} | "
        f"{of_the_time(live)} | {seconds} | {live.untimed or ''} |"
    )


def table(found: Mapping[str, Report]) -> list[str]:
    """All of it, as Markdown, and in how many programs a layout ran."""
    ran = [run for run, report in found.items() if best(report) is not None]
    lines = [HEAD, "|---|---|---|---|---|---|---|---|", *(row(run, report) for run, report in found.items())]
    return [*lines, "", f"A layout ran in the program itself, with the same output, in {len(ran)} of {len(found)}."]


def reports(folder: Path) -> dict[str, Report]:
    """The reports of a farm in ``folder``, or of those in folders of it, by run."""
    files = sorted({*folder.glob("runs/*/*/report.json"), *folder.glob("*/runs/*/*/report.json")})
    return {file.parent.name: decode(file.read_bytes()) for file in files}


if __name__ == "__main__":
    print("\n".join(table(reports(Path(sys.argv[1])))))
