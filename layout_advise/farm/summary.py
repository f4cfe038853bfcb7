"""From rows to a summary: totals, blockers by number of programs, and machines side by side."""

from __future__ import annotations

import datetime
from collections import defaultdict
from collections.abc import Iterable, Sequence
from statistics import fmean, median

from layout_advise import __version__
from layout_advise.farm.rows import is_measured
from layout_advise.reports.model.farm import (
    FARM_SCHEMA,
    FarmBlocker,
    FarmReport,
    FarmRow,
    FarmTotals,
    MachineComparison,
)


def summary(rows: Sequence[FarmRow], listing: str) -> FarmReport:
    """The whole summary of the rows of one list."""
    return FarmReport(
        schema=FARM_SCHEMA,
        version=__version__,
        list=listing,
        created=datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        totals=totals(rows),
        rows=tuple(rows),
        blockers=blockers(rows),
        comparisons=comparisons(rows),
    )


def decided(row: FarmRow) -> bool:
    """Whether the run ended with ``change`` or ``keep`` from measured times."""
    return is_measured(row.action, row.reason, row.measured)


def totals(rows: Sequence[FarmRow]) -> FarmTotals:
    """Counts over programs."""
    programs: dict[str, list[FarmRow]] = defaultdict(list)
    for row in rows:
        programs[row.program].append(row)
    seconds = [row.seconds for row in rows if row.status in ("done", "native", "timed-out", "failed")]
    covered = [fmean((row.share or 0.0) if decided(row) else 0.0 for row in group) for group in programs.values()]

    def count(action: str) -> int:
        return sum(any(row.action == action for row in group) for group in programs.values())

    return FarmTotals(
        programs=len(programs),
        runs=len(rows),
        reports=sum(row.status == "done" for row in rows),
        decided=sum(all(decided(row) for row in group) for group in programs.values()),
        covered=round(fmean(covered), 4) if covered else 0.0,
        change=count("change"),
        keep=count("keep"),
        undecided=count("undecided"),
        median_seconds=round(median(seconds), 1) if seconds else None,
        most_seconds=round(max(seconds), 1) if seconds else None,
    )


def blockers(rows: Iterable[FarmRow]) -> tuple[FarmBlocker, ...]:
    """Why runs ended without a measured answer, the reason with most programs first."""
    programs: dict[str, list[str]] = defaultdict(list)
    examples: dict[str, list[str]] = defaultdict(list)
    for row in rows:
        if decided(row) or row.status == "native":
            continue
        reason = row.reason if row.status == "done" else row.status
        if row.program not in programs[reason]:
            programs[reason].append(row.program)
            examples[reason].append(f"{row.program}: {row.blocker if row.status == 'done' else row.why}")
    ranked = sorted(programs, key=lambda reason: (-len(programs[reason]), reason))
    return tuple(FarmBlocker(reason, tuple(programs[reason]), tuple(examples[reason])) for reason in ranked)


def comparisons(rows: Iterable[FarmRow]) -> tuple[MachineComparison, ...]:
    """The runs that several machines made."""
    runs: dict[str, list[FarmRow]] = defaultdict(list)
    for row in rows:
        runs[row.run].append(row)
    return tuple(_compared(run, group) for run, group in runs.items() if len({row.machine for row in group}) > 1)


def _compared(run: str, group: Sequence[FarmRow]) -> MachineComparison:
    spans = [(row.lo, row.hi) for row in group if row.lo is not None and row.hi is not None]
    meet = not spans or max(lo for lo, _ in spans) <= min(hi for _, hi in spans)
    actions = tuple(row.action or row.status for row in group)
    return MachineComparison(
        run=run,
        machines=tuple(row.machine for row in group),
        actions=actions,
        gains=tuple(row.gain for row in group),
        agree=len(set(actions)) == 1 and meet,
    )
