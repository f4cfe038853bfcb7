"""The report's part about one hotspot: where its time goes, how it was traced and measured, and the verdict.

Part of the contract in :mod:`layout_advise.reports.model.contract`.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from layout_advise.reports.model.candidate import Ablation, CandidateReport, Identity, Interval
from layout_advise.reports.model.source import AnnotatedLine
from layout_advise.reports.model.structure import SharedLines, StructureReport
from layout_advise.reports.model.threads import ByThreads

Action = Literal["change", "keep", "undecided"]


class Original(msgspec.Struct, frozen=True):
    """Nanoseconds of one call of the original; None where it was not measured.

    ``ns_fresh``: repeated like the steady one, but with branches that the processor does not know; measured where the way of
    a call hangs on its data and it takes longer in the program than repeated. ``unknown`` (0 to 1) is then the part of what
    repeating teaches that is not known in the program: speedups are of times with so much of it unknown."""

    ns_cold: float | None
    """In restored processes, with flushed caches."""
    ns_steady: float | None
    """In restored processes, with caches warm by calls before."""
    ns_in_situ: float | None
    """In the running program: the median of the calls looked at."""
    ns_fresh: float | None = None
    unknown: float | None = None
    ns_processes: tuple[float, ...] = ()
    """The median time of the calls looked at in each process of the running program, disturbed ones with them."""


class Span(msgspec.Struct, frozen=True):
    """The noise floor: range of the A/A medians over the restores."""

    lo: float
    """The least of the medians of the original's time over itself."""
    hi: float
    """The greatest of them."""


class TraceSummary(msgspec.Struct, frozen=True):
    """``references`` counts dynamic accesses, ``terms`` the nodes of the folded trace; ``limits`` says what was cut."""

    backend: str
    """What recorded the accesses: ``clone`` (an instrumented copy of the code), ``valgrind``, ``pin`` or ``step``."""
    references: int
    terms: int
    truncated: bool
    """Whether the trace ends before the call does."""
    limits: tuple[str, ...] = ()


class LoopAdvice(msgspec.Struct, frozen=True):
    """The unchanged layout built in another way: ``form`` is its variant (``identity-simd``), ``gain`` its speedup over the
    original, ``text`` how to write it."""

    form: str
    gain: Interval
    text: str


class Verdict(msgspec.Struct, frozen=True):
    """The decision. ``candidate`` and ``gain`` only with ``change``; ``reason`` is a stable word, ``text`` a sentence.
    ``gain`` is the winner's median, or the lower end of its interval where that is wide (``docs/decisions/0031``).

    ``use``: ``temporary`` where the gain stays although the data is converted before each call and back after it,
    ``permanent`` where it does not; None where that was not measured."""

    action: Action
    """``change`` the layout, ``keep`` it, or ``undecided``."""
    candidate: str | None
    gain: float | None
    reason: str
    text: str
    use: Literal["permanent", "temporary"] | None = None
    interval: Interval | None = None
    """The gain that is claimed with every doubt in it (``error_budget`` of the candidate); of ``undecided`` and ``keep``
    what is left possible of the best candidate."""
    about: str | None = None
    """The candidate that ``interval`` is of where none is advised."""
    doubt: str | None = None
    """The term of its ``error_budget`` that leaves the answer open."""
    peers: tuple[str, ...] = ()
    """Candidates that are not shown to be slower than the advised one."""
    faster: tuple[str, ...] = ()
    """Those of ``peers`` that are shown to be faster, but are harder to write (``docs/decisions/0080``)."""
    loop: LoopAdvice | None = None
    """What the loop gains with the layout unchanged, where that is worth advising by itself."""
    program: Interval | None = None
    """The speedup of the whole program, where the layout was measured in several regions; of a ``keep`` by what the program
    could gain, 1 up to the greatest one that is not excluded."""


class NotLifted(msgspec.Struct, frozen=True):
    """An instruction that stopped the lifter."""

    address: str
    """In the program's file, hexadecimal."""
    instruction: str
    """As disassembled."""
    file: str | None
    """The source file, where debug information has it."""
    line: int | None
    """The source line, or None."""
    reason: str
    """What the lifter has no rule for."""


class EndedWay(msgspec.Struct, frozen=True):
    """A way through the hotspot that no compared call took: mock-ups end where it begins. ``reason``: what could not be
    lifted on it."""

    address: str
    """In the program's file, hexadecimal."""
    file: str | None
    """The source file, where debug information has it."""
    line: int | None
    """The source line, or None."""
    reason: str


class KeptCall(msgspec.Struct, frozen=True):
    """A call that mock-ups make as the hotspot does, of machine code that is not lifted; ``function`` is None where it is
    known at run time only. It touches nothing that gets another layout: that memory is inaccessible while mock-ups are
    compared."""

    address: str
    """In the program's file, hexadecimal."""
    function: str | None
    file: str | None
    """The source file, where debug information has it."""
    line: int | None
    """The source line, or None."""


class CompiledBy(msgspec.Struct, frozen=True):
    """The compiler of the mock-ups: the program's own one (its version), with the program's flags where these are
    ``recorded`` in its debug information, else with -O2 and what its instructions show. ``note``: why it is another
    compiler, or empty."""

    compiler: str
    """The command (``gcc-12``)."""
    flags: tuple[str, ...]
    """The options that say how to compile."""
    recorded: bool
    note: str = ""


class Batch(msgspec.Struct, frozen=True):
    """Short calls, timed and compared so many at a time: ``ns_low`` and ``ns_high`` are the 10th and 90th percentile of
    their times in the running program, which tell how much they differ from each other."""

    calls: int
    """Calls in one batch."""
    ns_low: float
    ns_median: float
    """Median of a call's time in the running program, in nanoseconds."""
    ns_high: float
    put_back: int | None = None
    """How many words of 8 bytes that the program writes between the calls, and that they touch, are put back between them;
    None where that is not known."""
    unknown: str | None = None
    """Why it is not known what the program writes between the calls, or between further ones; or None."""


class KindReport(msgspec.Struct, frozen=True):
    """Calls of the hotspot that do other work than its other calls. There are about ``calls`` of them in the run, with
    ``share`` of the hotspot's time, as far as the first calls tell; ``call`` stands for them, ``text`` names them.
    ``reason``: why they were not measured (they then count as unchanged), or None."""

    calls: int
    share: float
    call: int
    ns_in_situ: float | None
    """Median of a call's time in the running program, in nanoseconds."""
    text: str
    reason: str | None = None


class BaselineReport(msgspec.Struct, frozen=True):
    """The region in an earlier run of the program, before its layout was changed. ``run`` is that run's name, ``candidate``
    the layout tried there that the structures have now (None: none of them), ``rest``: members that it leaves out and that
    lie between here. ``speedup``: the time of a call there over that here; None (``reason``) where that is not known.
    ``left``: what the best layout measured there gained over this one, where it is shown to gain more."""

    run: str
    candidate: str | None
    label: str
    """That layout in words."""
    advised: bool
    """Whether the earlier run advised it."""
    speedup: Interval | None
    text: str
    """One sentence about it."""
    rest: tuple[str, ...] = ()
    reason: str | None = None
    left: Interval | None = None


class HotspotReport(msgspec.Struct, frozen=True):
    """One hotspot with everything found about it."""

    symbol: str
    """The linker symbol."""
    region: Literal["function", "loop"]
    """What was studied: a function, or a loop in it."""
    file: str | None
    """The source file, where debug information has it."""
    line: int | None
    """The source line where it begins, or None."""
    share: float
    """Part of the program's samples that fell in it and what it calls, 0 to 1."""
    calls: int
    """How often the program enters it."""
    call: int
    """The number of the call that was studied, from 1."""
    snapshot: Literal["criu", "fork"]
    """How the stopped process was copied for the timing; ``fork`` also where nothing was timed."""
    threads: int
    """Threads that run it."""
    clock: Literal["thread-cpu", "wall"]
    """What times are of: CPU time of the thread, or wall time of a parallel region."""
    original: Original
    """Its times as the program has it."""
    trace: TraceSummary | None
    """None where nothing was traced."""
    structures: tuple[StructureReport, ...]
    """The data that it uses."""
    identity: Identity | None
    """Its mock-up with the layout unchanged; None where nothing was lifted."""
    noise: Span | None
    """None where nothing was timed."""
    candidates: tuple[CandidateReport, ...]
    """All layouts that were tried, also those refused."""
    verdict: Verdict
    """The answer."""
    not_lifted: tuple[NotLifted, ...] = ()
    """What stopped the lifter."""
    ablation: Ablation | None = None
    """None where no build has vector instructions."""
    shared_lines: tuple[SharedLines, ...] = ()
    """False sharing between the threads of a parallel region."""
    by_threads: ByThreads | None = None
    """None for serial hotspots, and where nothing was measured."""
    batch: Batch | None = None
    """None where calls are long enough to be timed one by one. All times are those of one call."""
    chunk: int | None = None
    """So many iterations of the loop in a row are a call; None where a call is a whole one."""
    kinds: tuple[KindReport, ...] = ()
    """Empty where all calls looked at do the same work; else that of ``call`` first, of which ``original``, ``trace`` and
    ``identity`` are. The accesses counted in ``structures`` are those of one call of each kind measured."""
    name: str = ""
    """The name to print: ``symbol`` as in the source, demangled and without its parameters."""
    ended_ways: tuple[EndedWay, ...] = ()
    """Calls that take one of them were not measured."""
    alone: float | None = None
    """Where several regions were studied, the part of the program's samples that no region before it in the list has."""
    waits: float = 0.0
    """The part of the elapsed time of the first run in which the program neither ran nor stood in line for a processor;
    shares and speedups of the whole program are of its CPU time."""
    processors: float = 1.0
    """The processors that it ran on at once in that run, at the mean; at least 1."""
    kept_calls: tuple[KeptCall, ...] = ()
    """Calls in it that stay calls."""
    alike: int = 0
    """Of most short calls one was chosen by its time: how many of those looked at take as long. Else 0."""
    compiled: CompiledBy | None = None
    """None where no mock-up was compiled."""
    no_live: str | None = None
    """Why a layout that was to be tried in the running program was not."""
    source: tuple[AnnotatedLine, ...] = ()
    """The lines that make accesses or take time; empty with ``--no-source``."""
    most_gain: float | None = None
    """The greatest speedup of the region that its measured layouts do not exclude, with every doubt; None where no layout
    was measured, or the times say nothing of the program's calls."""
    baseline: BaselineReport | None = None
    """None without ``--baseline``, and where that run does not have the region."""

    def __repr__(self) -> str:
        name = self.name or self.symbol
        return f"<HotspotReport {name}: {self.verdict.action}, {len(self.candidates)} layouts>"
