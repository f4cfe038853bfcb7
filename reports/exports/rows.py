"""All layouts of a report as a table: one row a candidate, the same columns in CSV, Parquet and data frames."""

from __future__ import annotations

import csv
import io
from typing import Any

from layout_advise.reports.model.candidate import CandidateReport, Interval
from layout_advise.reports.model.contract import Report
from layout_advise.reports.model.hotspot import HotspotReport
from layout_advise.reports.pages.tables import ranked
from layout_advise.reports.words.layout_words import families

COLUMNS = {
    "region": "string",
    "file": "string",
    "line": "int32",
    "share": "float64",
    "action": "string",
    "reason": "string",
    "advised": "bool_",
    "candidate": "string",
    "structures": "string",
    "layout": "string",
    "families": "string",
    "block": "int32",
    "variant": "string",
    "evidence": "string",
    "speedup": "float64",
    "speedup_lo": "float64",
    "speedup_hi": "float64",
    "over_identity": "float64",
    "over_identity_lo": "float64",
    "over_identity_hi": "float64",
    "program_speedup": "float64",
    "processes": "int32",
    "in_ms": "float64",
    "out_ms": "float64",
    "break_even_calls": "int64",
    "lines_before": "int64",
    "lines_after": "int64",
    "bytes_before": "int64",
    "bytes_after": "int64",
    "why_not": "string",
}
"""Names and types (of Arrow); what is not known is null, and empty in CSV."""


def records(report: Report) -> list[dict[str, Any]]:
    """One dictionary a candidate by column, in the order of the report; a region without candidates has one row."""
    found = []
    for hotspot in report.hotspots:
        found += [row for _, row in of_candidates(hotspot)] or [dict.fromkeys(COLUMNS) | _region(hotspot)]
    return found


def of_candidates(hotspot: HotspotReport) -> list[tuple[CandidateReport, dict[str, Any]]]:
    """The candidates of a region, the advised one first, each with its row."""
    region = _region(hotspot)
    return [(one, region | _candidate(one, hotspot)) for one in ranked(hotspot)]


def _region(hotspot: HotspotReport) -> dict[str, Any]:
    return {
        "region": hotspot.name or hotspot.symbol,
        "file": hotspot.file,
        "line": hotspot.line,
        "share": hotspot.share,
        "action": hotspot.verdict.action,
        "reason": hotspot.verdict.reason,
    }


def _candidate(one: CandidateReport, hotspot: HotspotReport) -> dict[str, Any]:
    costs, traffic = one.conversion, one.traffic
    return {
        "advised": one.id == hotspot.verdict.candidate,
        "candidate": one.id,
        "structures": " ".join(one.structures),
        "layout": families(one),
        "families": " ".join(one.families),
        "block": one.block,
        "variant": one.variant,
        "evidence": one.evidence,
        **_ends("speedup", one.speedup),
        **_ends("over_identity", one.over_identity),
        "program_speedup": one.program_speedup,
        "processes": one.speedup.restores if one.speedup is not None else None,
        "in_ms": costs.in_ms if costs is not None else None,
        "out_ms": costs.out_ms if costs is not None else None,
        "break_even_calls": costs.break_even_calls if costs is not None else None,
        "lines_before": traffic.lines_before if traffic is not None else None,
        "lines_after": traffic.lines_after if traffic is not None else None,
        "bytes_before": one.bytes.before,
        "bytes_after": one.bytes.after,
        "why_not": one.reason,
    }


def _ends(name: str, value: Interval | None) -> dict[str, float | None]:
    if value is None:
        return dict.fromkeys((name, f"{name}_lo", f"{name}_hi"))
    return {name: value.median, f"{name}_lo": value.lo, f"{name}_hi": value.hi}


def _no_formula(value: Any) -> Any:
    """A cell that a spreadsheet takes for a text: what begins like a formula gets an apostrophe."""
    return f"'{value}" if isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t")) else value


def as_csv(report: Report) -> str:
    """The table as CSV with a line of names."""
    out = io.StringIO()
    writer = csv.DictWriter(out, list(COLUMNS), lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _no_formula(value) for name, value in row.items()} for row in records(report))
    return out.getvalue()
