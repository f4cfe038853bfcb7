"""The report as data: the contract ``layout-advise.report/1`` (design, section 5).

``report.json`` is an encoded :class:`Report`; the terminal and HTML reports are made from the same object. The JSON
schema in ``docs/report.schema.json`` is generated from these classes and of the modules
beside it; a field is described by the docstring below it, or by that of its class. Fields may be added, none renamed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import msgspec

from layout_advise.errors import RunDirError
from layout_advise.reports.model.candidate import Interval
from layout_advise.reports.model.descriptions import described
from layout_advise.reports.model.hotspot import HotspotReport
from layout_advise.reports.model.plan import InRegion, ProgramPlan, Transfer

SCHEMA = "layout-advise.report/1"


class Tool(msgspec.Struct, frozen=True):
    """The program that wrote the report."""

    name: str
    """Always ``layout-advise``."""
    version: str
    """The version of the tool."""


class Binary(msgspec.Struct, frozen=True):
    """The program's file; ``producer`` is the compiler and its flags as recorded by DWARF."""

    path: str
    """As it was started, made absolute."""
    build_id: str | None
    """The linker's build id in hexadecimal digits; None where the file has none."""
    producer: str | None


class Program(msgspec.Struct, frozen=True):
    """How the program ended in the run to its end; ``deterministic`` whether later runs reached the same calls."""

    exit_status: int | None
    """None where a signal ended it."""
    signal: str | None
    """The name of the signal that ended it, or None."""
    deterministic: bool | None


class Machine(msgspec.Struct, frozen=True):
    """The machine that measured; sizes in bytes, 0 where unknown."""

    cpu: str
    """The processor's name as Linux tells it."""
    cores: int
    """Processors that this process may run on."""
    line_bytes: int
    """A cache line, in bytes."""
    l1d_bytes: int
    """The first data cache of one core, in bytes."""
    l2_bytes: int
    """The second cache of one core, in bytes."""
    l3_bytes: int
    """The last cache, in bytes."""


class Check(msgspec.Struct, frozen=True):
    """One quality check of the experiment."""

    id: str
    """A stable word (``noise-floor``)."""
    ok: bool
    """Whether it passed."""
    value: float | None
    """What was compared with the limit, in the unit that ``text`` names; None where there is no number."""
    text: str
    """One sentence: what was checked, and what was found."""


class Quality(msgspec.Struct, frozen=True):
    """``score`` is the share of the checks that passed."""

    score: float
    checks: tuple[Check, ...]
    """All checks that apply to this run."""


class Seconds(msgspec.Struct, frozen=True):
    """Wall seconds by stage."""

    sample: float = 0.0
    """Sampling the program to its end; of one region alone also finding, counting and timing its calls."""
    trace: float = 0.0
    """Of several regions finding and timing their calls; stopping at a call, tracing it, and looking for kinds of calls."""
    explore: float = 0.0
    """Tracing calls of the other kinds, lifting, and finding layouts."""
    measure: float = 0.0
    """Watching who else uses the data, compiling, comparing, timing, and waiting for other runs' turns."""
    total: float = 0.0
    """The sum of the stages, in seconds: without what is before the program is first run, and without writing the report."""


class Profile(msgspec.Struct, frozen=True):
    """One line of the profile."""

    symbol: str
    """The function's linker symbol."""
    share: float
    """Part of all samples in its own code, 0 to 1."""
    module: str
    """The file that it is in, without its folder."""


class PassedOver(msgspec.Struct, frozen=True):
    """A region that was looked at before the one in the report, and gave no answer; ``share`` of the samples."""

    name: str
    """The region as it is printed."""
    share: float
    reason: str
    """A stable word, as in ``verdict``."""
    text: str
    """One sentence: why there was no answer."""


class OverRegions(msgspec.Struct, frozen=True):
    """A layout that was measured in all regions that use its structures. ``candidate`` is its id, the same in all of them;
    ``program`` the speedup of the whole program by Amdahl's law, None where a region is not known."""

    candidate: str
    label: str
    """The layout in words."""
    regions: tuple[InRegion, ...]
    """What it gains in each region, the hottest first."""
    program: Interval | None


class Report(msgspec.Struct, frozen=True):
    """The whole report."""

    schema: str
    """``layout-advise.report/1``."""
    tool: Tool
    """What wrote the report."""
    created: str
    """When it was written: ISO 8601, UTC."""
    status: Literal["complete", "partial", "failed"]
    """``partial`` where a stage did not come to its end, ``failed`` where no region could be studied."""
    command: tuple[str, ...]
    """The program and its arguments."""
    binary: Binary
    """The program's file."""
    program: Program
    """The program's end."""
    machine: Machine
    """Where it was measured."""
    quality: Quality
    """Checks of the experiment."""
    seconds: Seconds
    """What the run of the tool took."""
    hotspots: tuple[HotspotReport, ...]
    """The regions studied, in the order of their part of the samples."""
    profile: tuple[Profile, ...] = ()
    """The hottest functions, hottest first."""
    policy: dict[str, dict[str, float]] = {}
    """By stage and name the limits that the verdict was decided with."""
    passed_over: tuple[PassedOver, ...] = ()
    """The regions that gave no answer before another one did."""
    over_regions: tuple[OverRegions, ...] = ()
    """The layouts of structures that several regions use, the best for the program first."""
    plan: ProgramPlan | None = None
    """None where one region was studied on one machine."""
    transfer: Transfer | None = None
    """The way of data between this machine and another one, as ``--transfer`` stated it; None where it did not."""
    started_in: str | None = None
    """The folder in which the command was started; None where it was left out."""

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
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
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
    """The JSON schema (draft 2020-12) of report.json, with a description of every property."""
    return described(msgspec.json.schema(Report), Report)
