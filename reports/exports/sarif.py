"""A report as SARIF 2.1.0 (OASIS, "Static Analysis Results Interchange Format"): for code scanning and editors."""

from __future__ import annotations

from pathlib import PurePath
from typing import Any
from urllib.parse import quote

from layout_advise.reports.exports.notes import accesses, relative
from layout_advise.reports.model.contract import Report
from layout_advise.reports.model.hotspot import HotspotReport
from layout_advise.reports.words.brief_names import readable
from layout_advise.reports.words.first_screen import first_screen, short
from layout_advise.reports.words.headline import headline

VERSION = "2.1.0"
RULES = {
    "change": "Another data layout was measured to be faster.",
    "keep": "Other data layouts were measured, or none applies; none is faster.",
    "undecided": "No answer; the message says what is open.",
}


def sarif(report: Report, root: str = "") -> dict[str, Any]:
    """The log as an object for ``json.dumps``: one run, one result a region. Files below ``root`` are relative to it."""
    brief = readable(report)
    rules = [
        {"id": f"layout-{action}", "shortDescription": {"text": text}, "defaultConfiguration": {"level": _level(action)}}
        for action, text in RULES.items()
    ]
    driver = {"name": report.tool.name, "version": report.tool.version, "rules": rules}
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "invocations": [{"executionSuccessful": report.status != "failed", "endTimeUtc": report.created}],
        "results": [_result(brief, said, one, root) for said, one in zip(brief.hotspots, report.hotspots, strict=True)],
    }
    return {"version": VERSION, "runs": [run]}


def _level(action: str) -> str:
    return "warning" if action == "change" else "note"


def _result(brief: Report, said: HotspotReport, hotspot: HotspotReport, root: str) -> dict[str, Any]:
    """The result of a region; ``said`` is the same region in ``brief``, which has brief names."""
    verdict = hotspot.verdict
    text = "\n".join((headline(said), *short(first_screen(brief, said))))
    known = {
        "reason": verdict.reason,
        "share": hotspot.share,
        "candidate": verdict.candidate,
        "gain": verdict.gain,
        "lo": verdict.interval.lo if verdict.interval is not None else None,
        "hi": verdict.interval.hi if verdict.interval is not None else None,
    }
    result: dict[str, Any] = {
        "ruleId": f"layout-{verdict.action}",
        "ruleIndex": list(RULES).index(verdict.action),
        "kind": "fail" if verdict.action == "change" else "informational",
        "level": "warning" if verdict.action == "change" else "none",
        "message": {"text": text},
        "properties": {name: value for name, value in known.items() if value is not None},
        "partialFingerprints": {"region/v1": f"{hotspot.symbol}:{hotspot.region}"},
    }
    logical = {"logicalLocations": [{"name": hotspot.name or hotspot.symbol, "kind": "function"}]}
    place = _location(hotspot.file, hotspot.line, root) if hotspot.file else {}
    result["locations"] = [place | logical]
    related = [
        {"id": number, "message": {"text": said}, **_location(file, line, root)}
        for number, (file, line, said) in enumerate(accesses(hotspot))
    ]
    return result | ({"relatedLocations": related} if related else {})


def _location(file: str, line: int | None, root: str) -> dict[str, Any]:
    path = relative(file, root)
    uri = quote(path) if not PurePath(path).is_absolute() else PurePath(path).as_uri()
    physical: dict[str, Any] = {"artifactLocation": {"uri": uri}}
    if line:
        physical["region"] = {"startLine": line}
    return {"physicalLocation": physical}
