"""The summary of many runs as data: the contract ``layout-advise.farm/1`` that ``layout-advise farm`` writes."""

from __future__ import annotations

from typing import Literal

import msgspec

FARM_SCHEMA = "layout-advise.farm/1"

Status = Literal["done", "native", "fetch-failed", "build-failed", "input-failed", "missing", "failed", "timed-out", "lost"]
"""``done``: there is a report. ``native``: the program was run without being traced. ``failed``: ``trace`` ended without a
report. ``lost``: the machine's worker died."""


class FarmRow(msgspec.Struct, frozen=True, kw_only=True):
    """One run on one machine. ``run`` names it (program, input and flags); ``digest`` is of all that the run depends on,
    ``why`` one line where there is no report. ``share`` is the part of the program's samples (0 to 1) in the regions with a
    measured answer, or, where the one told first has none, in that; ``gain`` what the verdict claims, from ``lo`` to ``hi``
    with every doubt, of the advised layout or of the one that comes nearest to a gain; where it claims nothing, the best
    speedup measured. Times in seconds: ``prepare_seconds`` for fetching, building and making
    the input (0 where these were there), ``seconds`` for ``trace`` or, natively, the program."""

    run: str
    program: str
    version: str
    language: str
    kind: str
    flags: str
    input: str
    machine: str
    cpu: str
    created: str
    digest: str
    status: Status
    why: str = ""
    symbol: str = ""
    share: float | None = None
    calls: int | None = None
    action: Literal["change", "keep", "undecided"] | None = None
    reason: str = ""
    text: str = ""
    blocker: str = ""
    """What stopped an answer, more closely than ``reason``: an instruction, a refused access; empty where not known."""
    candidate: str | None = None
    gain: float | None = None
    lo: float | None = None
    hi: float | None = None
    measured: int = 0
    """The number of layouts with a measured speedup."""
    seconds: float = 0.0
    prepare_seconds: float = 0.0
    exit_status: int | None = None
    same_output: bool | None = None
    """Natively: two runs printed the same; None where it was run once."""


class FarmBlocker(msgspec.Struct, frozen=True):
    """A reason for which runs ended without a measured answer. Each of the ``programs`` counts once, for all its runs."""

    reason: str
    programs: tuple[str, ...]
    examples: tuple[str, ...]


class MachineComparison(msgspec.Struct, frozen=True):
    """One run on several machines. ``agree``: the same action everywhere, and gains whose intervals overlap."""

    run: str
    machines: tuple[str, ...]
    actions: tuple[str, ...]
    gains: tuple[float | None, ...]
    agree: bool


class FarmTotals(msgspec.Struct, frozen=True):
    """Counts of programs, not of runs. ``decided`` have ``change`` or ``keep`` from measured times in each of their runs;
    ``covered`` is the mean over the programs of the part of their samples in regions so decided (0 to 1)."""

    programs: int
    runs: int
    reports: int
    decided: int
    covered: float
    change: int
    keep: int
    undecided: int
    median_seconds: float | None
    most_seconds: float | None


class FarmReport(msgspec.Struct, frozen=True):
    """All rows with what follows from them; ``list`` is the file that named the programs."""

    schema: str
    version: str
    list: str
    created: str
    totals: FarmTotals
    rows: tuple[FarmRow, ...]
    blockers: tuple[FarmBlocker, ...]
    comparisons: tuple[MachineComparison, ...]


def encode_farm(report: FarmReport) -> bytes:
    """The summary as indented JSON."""
    return msgspec.json.format(msgspec.json.encode(report), indent=2) + b"\n"


def decode_farm(data: bytes) -> FarmReport:
    """Reads a summary back; raises msgspec's errors where it is none."""
    return msgspec.json.decode(data, type=FarmReport)
