"""The report as data: the contract ``layout-advise.report/1`` (design, section 5).

``report.json`` is an encoded :class:`Report`; the terminal and HTML reports are made from the same object. The JSON
schema in ``docs/report.schema.json`` is generated from these classes and those of ``hotspotmodel.py``,
``candidatemodel.py`` and ``structuremodel.py``. Fields may be added, none renamed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import msgspec

from layout_advise.errors import RunDirError
from layout_advise.reports.model.candidate import Interval
from layout_advise.reports.model.hotspot import HotspotReport
from layout_advise.reports.model.plan import InRegion, ProgramPlan

SCHEMA = "layout-advise.report/1"


class Tool(msgspec.Struct, frozen=True):
    """The program that wrote the report."""

    name: str
    version: str


class Binary(msgspec.Struct, frozen=True):
    """The program's file; ``producer`` is the compiler and its flags as recorded by DWARF."""

    path: str
    build_id: str | None
    producer: str | None


class Program(msgspec.Struct, frozen=True):
    """How the program ended in the run to its end; ``deterministic`` whether later runs reached the same calls."""

    exit_status: int | None
    signal: str | None
    deterministic: bool | None


class Machine(msgspec.Struct, frozen=True):
    """The machine that measured; sizes in bytes, 0 where unknown."""

    cpu: str
    cores: int
    line_bytes: int
    l1d_bytes: int
    l2_bytes: int
    l3_bytes: int


class Check(msgspec.Struct, frozen=True):
    """One quality check of the experiment."""

    id: str
    ok: bool
    value: float | None
    text: str


class Quality(msgspec.Struct, frozen=True):
    """``score`` is the share of the checks that passed."""

    score: float
    checks: tuple[Check, ...]


class Seconds(msgspec.Struct, frozen=True):
    """Wall seconds by stage."""

    sample: float = 0.0
    trace: float = 0.0
    explore: float = 0.0
    measure: float = 0.0
    total: float = 0.0


class Profile(msgspec.Struct, frozen=True):
    """One line of the profile."""

    symbol: str
    share: float
    module: str


class PassedOver(msgspec.Struct, frozen=True):
    """A region that was looked at before the one in the report, and gave no answer; ``share`` of the samples."""

    name: str
    share: float
    reason: str
    text: str


class OverRegions(msgspec.Struct, frozen=True):
    """A layout that was measured in all regions that use its structures. ``candidate`` is its id, the same in all of them;
    ``program`` the speedup of the whole program by Amdahl's law, None where a region is not known."""

    candidate: str
    label: str
    regions: tuple[InRegion, ...]
    program: Interval | None


class Report(msgspec.Struct, frozen=True):
    """The whole report."""

    schema: str
    tool: Tool
    created: str
    status: Literal["complete", "partial", "failed"]
    command: tuple[str, ...]
    binary: Binary
    program: Program
    machine: Machine
    quality: Quality
    seconds: Seconds
    hotspots: tuple[HotspotReport, ...]
    profile: tuple[Profile, ...] = ()
    policy: dict[str, dict[str, float]] = {}
    """By stage and name the limits that the verdict was decided with."""
    passed_over: tuple[PassedOver, ...] = ()
    """The regions that gave no answer before another one did."""
    over_regions: tuple[OverRegions, ...] = ()
    """The layouts of structures that several regions use, the best for the program first."""
    plan: ProgramPlan | None = None
    """None where one region was studied."""

    def __repr__(self) -> str:
        regions = ", ".join(f"{h.name or h.symbol}: {h.verdict.action}" for h in self.hotspots)
        return f"<Report of {self.command[0] if self.command else '?'}: {regions or 'no region'}>"


def encode(report: Report) -> bytes:
    """The report as indented JSON."""
    return msgspec.json.format(msgspec.json.encode(report), indent=2) + b"\n"


def decode(data: bytes, where: str = "report.json") -> Report:
    """Read a report back. Raises RunDirError when it is damaged or from another version."""
    try:
        header = msgspec.json.decode(data)
        schema = header.get("schema") if isinstance(header, dict) else None
        if schema != SCHEMA:
            raise RunDirError(
                f"cannot read {where}",
                f"its schema is {schema!r}, this version reads {SCHEMA!r}",
                "run `layout-advise trace` again with this version",
            )
        return msgspec.convert(header, Report)
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise RunDirError(f"cannot read {where}", f"it is damaged ({error})", "run the trace again with -f") from error


def read_report(path: Path) -> Report:
    """The report in a run directory (or of a report.json given directly)."""
    file = path / "report.json" if path.is_dir() else path
    try:
        data = file.read_bytes()
    except OSError as error:
        raise RunDirError(
            f"no report in {path}", error.strerror or str(error), "give a folder that `trace` wrote"
        ) from error
    return decode(data, str(file))


def schema() -> dict[str, Any]:
    """The JSON schema (draft 2020-12) of report.json."""
    return msgspec.json.schema(Report)
