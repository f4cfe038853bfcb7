"""Rows: of a job, of a report, kept on disk one file each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from layout_advise.farm.listing import Job
from layout_advise.reasons import MEASURED, Reason
from layout_advise.reports.model.contract import Report
from layout_advise.reports.model.farm import FarmRow, Status
from layout_advise.reports.model.hotspot import HotspotReport
from layout_advise.rundir import write_atomically


def row_of(job: Job, *, machine: str, cpu: str, created: str, digest: str) -> FarmRow:
    """The row of ``job`` before anything is known of it."""
    entry = job.entry
    return FarmRow(
        run=job.id,
        program=entry.name,
        version=entry.version,
        language=entry.language,
        kind=entry.kind,
        flags=entry.flags.get(job.flags, ""),
        input=job.input,
        machine=machine,
        cpu=cpu,
        created=created,
        digest=digest,
        status="lost",
    )


def ended(row: FarmRow, status: Status, why: str = "", **facts: float | int | bool | None) -> FarmRow:
    """``row`` with how the run ended; times are rounded to hundredths of a second."""
    rounded = {name: round(value, 2) if isinstance(value, float) else value for name, value in facts.items()}
    return msgspec.structs.replace(row, status=status, why=why, **rounded)


def of_report(row: FarmRow, report: Report) -> FarmRow:
    """``row`` with what the report says of the region that it tells first; its share is that of all regions with a measured
    answer, where that region has one."""
    if not report.hotspots:
        return row
    hotspot = report.hotspots[0]
    verdict = hotspot.verdict
    speedups = [(one.id, one.speedup) for one in hotspot.candidates if one.speedup is not None]
    best = max(speedups, key=lambda one: (one[0] == verdict.candidate, one[1].median), default=None)
    if verdict.interval is not None and (told := verdict.candidate or verdict.about) is not None:
        best = told, verdict.interval
    return msgspec.structs.replace(
        row,
        symbol=hotspot.name or hotspot.symbol,
        share=round(_share(report), 4),
        calls=hotspot.calls,
        action=verdict.action,
        reason=verdict.reason,
        text=verdict.text,
        blocker=_blocker(hotspot),
        candidate=best[0] if best else None,
        gain=round(best[1].median, 3) if best else None,
        lo=round(best[1].lo, 3) if best else None,
        hi=round(best[1].hi, 3) if best else None,
        measured=len(speedups),
    )


def _share(report: Report) -> float:
    """The part of the samples that the row is of; regions that overlap count once."""
    first = report.hotspots[0]
    if not _answered(first):
        return first.share
    whole = first.verdict.reason == Reason.NO_PROGRAM_GAIN
    told = [one for one in report.hotspots if (one.most_gain is not None if whole else _answered(one))]
    return sum(one.share if one.alone is None else one.alone for one in told)


def _answered(hotspot: HotspotReport) -> bool:
    measured = sum(one.speedup is not None for one in hotspot.candidates)
    return is_measured(hotspot.verdict.action, hotspot.verdict.reason, measured)


def _blocker(hotspot: HotspotReport) -> str:
    """Of a hotspot without a measured answer the part of the report that says most closely what stopped it."""
    if is_measured(hotspot.verdict.action, hotspot.verdict.reason, 1):
        return ""
    if hotspot.not_lifted:
        first = hotspot.not_lifted[0]
        return f"{first.instruction}: {first.reason}"
    if hotspot.identity is not None and hotspot.identity.reason:
        return hotspot.identity.reason
    limits = hotspot.trace.limits if hotspot.trace is not None else ()
    return limits[0] if limits else hotspot.verdict.text


def is_measured(action: str | None, reason: str, measured: int) -> bool:
    """Whether a verdict is an answer, and rests on measured times."""
    return action in ("change", "keep") and reason in MEASURED and measured > 0


def write_row(folder: Path, row: FarmRow, native: bool) -> None:
    """Keeps a row in ``folder/rows/MACHINE/RUN.json``."""
    path = _path(folder, row.machine, row.run, native)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, msgspec.json.format(msgspec.json.encode(row), indent=1) + b"\n")


def read_rows(folder: Path, digests: Mapping[str, str], native: bool) -> list[FarmRow]:
    """The rows of the runs named in ``digests``, of all machines; those of another digest are of another program or version
    of it, and are left out."""
    found = []
    for machine in sorted((folder / "rows").glob("*/")):
        for run, digest in digests.items():
            try:
                row = msgspec.json.decode(_path(folder, machine.name, run, native).read_bytes(), type=FarmRow)
            except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                continue
            if row.digest == digest:
                found.append(row)
    return found


def _path(folder: Path, machine: str, run: str, native: bool) -> Path:
    return folder / "rows" / machine / f"{run}{'.native' if native else ''}.json"


def in_order(rows: Iterable[FarmRow], runs: Iterable[str]) -> list[FarmRow]:
    """The rows in the order of ``runs``, those of one run by machine."""
    places = {run: number for number, run in enumerate(runs)}
    return sorted(rows, key=lambda row: (places.get(row.run, len(places)), row.machine))
