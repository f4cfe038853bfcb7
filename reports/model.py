"""The report as data: the contract ``layout-advise.report/1`` (design, section 5).

``report.json`` is an encoded :class:`Report`; the terminal and HTML reports are made from the same object. The JSON
schema in ``docs/report.schema.json`` is generated from these classes. Fields may be added, none renamed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import msgspec

from layout_advise.errors import RunDirError

SCHEMA = "layout-advise.report/1"

Evidence = Literal["verified", "close", "replayed", "modelled", "rejected"]
Action = Literal["change", "keep", "undecided"]


class Tool(msgspec.Struct, frozen=True):
    """What wrote the report."""

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


class Interval(msgspec.Struct, frozen=True):
    """Median and 95 % bootstrap interval over ``restores`` restored processes."""

    median: float
    lo: float
    hi: float
    restores: int | None = None


class Span(msgspec.Struct, frozen=True):
    """The noise floor: range of the A/A medians over the restores."""

    lo: float
    hi: float


class Original(msgspec.Struct, frozen=True):
    """Nanoseconds of one call of the original; None where it was not measured."""

    ns_cold: float | None
    ns_steady: float | None
    ns_in_situ: float | None


class TraceSummary(msgspec.Struct, frozen=True):
    """``references`` counts dynamic accesses, ``terms`` the nodes of the folded trace; ``limits`` says what was cut."""

    backend: Literal["clone", "valgrind", "pin", "step"]
    references: int
    terms: int
    truncated: bool
    limits: tuple[str, ...] = ()


class FieldUse(msgspec.Struct, frozen=True):
    """A field of the innermost element; ``offset`` and ``bytes`` in bytes, counts are dynamic accesses."""

    name: str
    type: str | None
    offset: int
    bytes: int
    reads: int
    writes: int


class StructureReport(msgspec.Struct, frozen=True):
    """A structure with its layout term in units of ``unit_bytes``."""

    id: str
    name: str
    kind: Literal["heap", "global", "stack", "mapped"]
    type: str | None
    alloc_site: str | None
    base: str
    bytes: int
    element_bytes: int
    count: int
    unit_bytes: int
    layout: str
    fields: tuple[FieldUse, ...]
    cold_fields: tuple[FieldUse, ...] = ()
    declaration: str = ""
    drawing: str = ""
    note: str | None = None
    """Why nothing can be restructured here, or None."""
    used_part: float | None = None
    """Which part of the elements the call uses, where an index array picks them; None where it is not known."""


class Identity(msgspec.Struct, frozen=True):
    """The identity mock-up; ``ratio`` is its time over the original's."""

    evidence: Evidence
    ratio: Interval | None
    reason: str | None


class PartReport(msgspec.Struct, frozen=True):
    """Fields that share a term of the new layout."""

    structure: str
    fields: tuple[str, ...]
    unit_bytes: int
    term: str


class Verification(msgspec.Struct, frozen=True):
    """What was compared: calls, bytes compared, bytes that the call changed, greatest ulp difference."""

    calls: int
    bytes_compared: int
    bytes_changed: int
    max_ulp: int


class Conversion(msgspec.Struct, frozen=True):
    """Cost of converting to and from the new layout once; calls after which that is paid back (None: never).

    ``copied_in`` and ``copied_out`` are the fields that a view around one call copies. ``around`` is the speedup with the
    conversion around every call as it was timed, where it was; ``break_even`` the break-even's interval over processes."""

    in_ms: float
    out_ms: float
    break_even_calls: int | None
    copied_in: tuple[str, ...] = ()
    copied_out: tuple[str, ...] = ()
    around: Interval | None = None
    break_even: Interval | None = None


class KindSpeedup(msgspec.Struct, frozen=True):
    """What a candidate gains at the calls of one kind: ``kind`` is the place in the hotspot's ``kinds``, from 0; ``speedup``
    is exactly 1 where these calls do not touch what is re-laid."""

    kind: int
    speedup: Interval | None


class Traffic(msgspec.Struct, frozen=True):
    """Distinct cache lines touched by one call in the structures concerned."""

    lines_before: int
    lines_after: int


class Bytes(msgspec.Struct, frozen=True):
    """Size of the structures concerned."""

    before: int
    after: int


class CandidateReport(msgspec.Struct, frozen=True):
    """One layout that was tried. ``speedup`` is original over mock-up, None for modelled evidence. ``classes``: elements
    are stored by class, in this many parts; of each so many neighbours the one that a call uses is in the first."""

    id: str
    structures: tuple[str, ...]
    families: tuple[str, ...]
    block: int | None
    temporary: bool
    layout: dict[str, str]
    derivation: tuple[str, ...]
    variant: Literal["plain", "restrict", "simd"]
    parts: tuple[PartReport, ...]
    evidence: Evidence
    reason: str | None
    verification: Verification | None
    speedup: Interval | None
    over_identity: Interval | None
    cold: Interval | None
    conversion: Conversion | None
    net_speedup: float | None
    program_speedup: float | None
    traffic: Traffic | None
    bytes: Bytes
    mockup: str | None
    declaration: str = ""
    drawing: str = ""
    source: str = ""
    measured_again: bool = False
    classes: int | None = None
    replay: Interval | None = None
    """Time of the loads and stores alone, replayed in the present layout, over that in this one (evidence ``replayed``): no
    speedup of the hotspot."""
    kinds: tuple[KindSpeedup, ...] = ()
    """Where the hotspot has several kinds of calls: the speedup at each that was measured; ``speedup`` is then that over all
    of them, weighted by their shares."""


class Ablation(msgspec.Struct, frozen=True):
    """What the layout and the vector instructions do each by themselves: speedups over the original of the unchanged layout
    without them (``neither``) and with them (``simd``), of ``candidate`` without (``layout``) and with them (``both``)."""

    candidate: str
    neither: Interval | None
    layout: Interval | None
    simd: Interval | None
    both: Interval | None


class Verdict(msgspec.Struct, frozen=True):
    """What to do. ``candidate`` and ``gain`` only with ``change``; ``reason`` is a stable word, ``text`` a sentence.

    ``use``: ``temporary`` where the gain stays although the data is converted before each call and back after it,
    ``permanent`` where it does not; None where that was not measured."""

    action: Action
    candidate: str | None
    gain: float | None
    reason: str
    text: str
    use: Literal["permanent", "temporary"] | None = None


class NotLifted(msgspec.Struct, frozen=True):
    """An instruction that stopped the lifter."""

    address: str
    instruction: str
    file: str | None
    line: int | None
    reason: str


class SharedLines(msgspec.Struct, frozen=True):
    """A variable with ``false`` cache lines that ``threads`` of the parallel region use, each with bytes of its own, and at
    least one writes; in ``true`` more lines they use the same bytes. ``fields`` and ``places`` (file:line) are what meets in
    the former; ``structure`` its id where it is one of the structures."""

    name: str
    structure: str | None
    false: int
    true: int
    threads: tuple[int, ...]
    fields: tuple[str, ...]
    places: tuple[str, ...]


class Batch(msgspec.Struct, frozen=True):
    """Short calls, timed and compared so many at a time: ``ns_low`` and ``ns_high`` are the 10th and 90th percentile of
    their times in the running program, which tell how much they differ from each other."""

    calls: int
    ns_low: float
    ns_median: float
    ns_high: float


class KindReport(msgspec.Struct, frozen=True):
    """Calls of the hotspot that do other work than its other calls. There are about ``calls`` of them in the run, with
    ``share`` of the hotspot's time, as far as the first calls tell; ``call`` stands for them, ``text`` names them.
    ``reason``: why they were not measured (they then count as unchanged), or None."""

    calls: int
    share: float
    call: int
    ns_in_situ: float | None
    text: str
    reason: str | None = None


class HotspotReport(msgspec.Struct, frozen=True):
    """One hotspot with everything found about it."""

    symbol: str
    region: Literal["function", "loop"]
    file: str | None
    line: int | None
    share: float
    calls: int
    call: int
    snapshot: Literal["criu", "fork"]
    threads: int
    clock: Literal["thread-cpu", "wall"]
    original: Original
    trace: TraceSummary | None
    structures: tuple[StructureReport, ...]
    identity: Identity | None
    noise: Span | None
    candidates: tuple[CandidateReport, ...]
    verdict: Verdict
    not_lifted: tuple[NotLifted, ...] = ()
    ablation: Ablation | None = None
    """None where no build has vector instructions."""
    shared_lines: tuple[SharedLines, ...] = ()
    """False sharing between the threads of a parallel region."""
    batch: Batch | None = None
    """None where calls are long enough to be timed one by one. All times are those of one call."""
    kinds: tuple[KindReport, ...] = ()
    """Empty where all calls looked at do the same work; else that of ``call`` first, of which ``original``, ``trace`` and
    ``identity`` are. The accesses counted in ``structures`` are those of one call of each kind measured."""


class Profile(msgspec.Struct, frozen=True):
    """One line of the profile."""

    symbol: str
    share: float
    module: str


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
