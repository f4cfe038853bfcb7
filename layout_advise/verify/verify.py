"""Does a mock-up compute what the original computes? One flow; a runner says in which copies of the program calls are run.

The original has run. A check build of each mock-up has every access compared with the trace or the new layout's map; then
the mock-up runs, and what it wrote and returns is compared with the original's. The old block is inaccessible meanwhile, so
that one access that was not re-indexed ends the run.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from layout_advise.errors import SnapshotError
from layout_advise.mockup.evidence.check_records import check_records, check_shared
from layout_advise.mockup.evidence.kept_calls import kept_calls
from layout_advise.mockup.ir.effects import Gpr
from layout_advise.mockup.ir.lifted import Lifted
from layout_advise.mockup.lift.flow import RIP
from layout_advise.mockup.machine.openmp_runtime import is_dynamic
from layout_advise.mockup.timing.variants import Variant
from layout_advise.tracer.process.stopped_program import POISON, Range, RunResult, StoppedProgram, Strided
from layout_advise.tracer.snapshot.compare import compare
from layout_advise.tracer.trace.trace import Registers, Trace
from layout_advise.verify.order_dependent_sums import SharedSum, farthest
from layout_advise.verify.policy import VERIFY

Outcome = tuple[tuple[bytes, ...], ...]
NOTHING_CHANGED = "the call returns nothing, and leaves memory as it was: what it writes, if anything, was there already"
"""Why a mock-up could not be told from one that does nothing."""


NOT_TAKEN = "it took a way that no compared call of the original took"
"""Why a mock-up ended before its end."""

OTHER_POISONS = (0x5B, 0x00)
"""What else the memory is overwritten with, one after the other, which a layout moves, where functions are called that may
read it: large and negative (:data:`POISON`), large and positive, and nothing at all. What reads it and does the same with
all three and with the right values would do the same with nearly any."""
TOUCHED = "; a function that it calls may use what the layout moves"
"""Added where a mock-up of another layout died that has calls which stay calls."""


@dataclass(frozen=True, slots=True)
class Subject:
    """A mock-up to verify. ``forbidden`` is the memory that it re-lays; ``remapped`` how many accesses
    of one call must go to new buffers, at least and at most (None: do not check, for the identity)."""

    variant: Variant
    mockup: Path
    check: Path | None
    forbidden: tuple[Range | Strided, ...]
    remapped: tuple[int, int] | None


@dataclass(frozen=True, slots=True)
class Finding:
    """``reason`` is None where the bytes and registers were equal, but for sums that are ``max_ulp`` units of the last place
    apart (:mod:`layout_advise.verify.order_dependent_sums`)."""

    reason: str | None
    bytes_compared: int = 0
    bytes_changed: int = 0
    max_ulp: int = 0

    @property
    def evidence(self) -> Literal["verified", "close", "rejected"]:
        """The evidence that the comparison gives."""
        return "rejected" if self.reason is not None else "close" if self.max_ulp else "verified"


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRunner(ABC):
    """Runs calls in copies of ``before``, which stands before the call; in ``original`` the original ran and changed
    ``changed`` bytes. It returned ``expected`` (None: not compared). ``apart`` is memory that is not the program's; ``sums``
    are compared up to ``rounding`` units of the last place. ``traces`` are those of each thread that runs the region, of
    which there may be ``threads``. Without ``lifted`` no check build can be run."""

    program: StoppedProgram
    before: StoppedProgram
    original: StoppedProgram
    apart: tuple[Range, ...]
    changed: int
    lifted: Lifted | None
    traces: tuple[Trace, ...]
    threads: int = 1
    expected: Outcome | None = None
    only_memory: bool = True
    """Nothing but memory tells what a call did."""
    sums: tuple[SharedSum, ...] = ()
    rounding: int = 0
    side_by_side: int = 1
    """How many mock-ups may be examined at a time."""

    @property
    def calls(self) -> bool:
        """Whether there are calls that stay calls."""
        return self.lifted is not None and bool(kept_calls(self.lifted))

    def copy(self) -> StoppedProgram:
        """A process that stands before the call."""
        return self.before.fork()

    @abstractmethod
    def load(self, copy: StoppedProgram, subject: Subject) -> tuple[int, tuple[Range, ...]]:
        """The mock-up's number in ``copy``, and memory mapped for it. Raises SnapshotError where it cannot be loaded."""


def verify(
    runner: CallRunner,
    subjects: Sequence[Subject],
    folder: Path | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
    seconds: float = VERIFY.budget_s,
) -> dict[Variant, Finding]:
    """Compares every subject with the original; ``folder`` takes what check builds record (None: they are not run). A few
    are examined at a time, each in its own processes; if that is broken off, what they run is killed, so that nobody waits
    for a mock-up that hangs. After ``seconds`` no further one is begun."""
    end = time.monotonic() + seconds

    def examine(subject: Subject) -> Finding:
        if time.monotonic() > end and subject is not subjects[0]:
            return Finding(f"not compared: the {seconds:.0f} s for comparisons are over")
        problem = _checked(runner, subject, subject.check, folder) if folder and subject.check else None
        if problem:
            return Finding(problem)
        found = [_compared(runner, subject, POISON)]
        # what functions read that stay calls, no check build sees
        for other in OTHER_POISONS if subject.remapped is not None and runner.calls else ():
            if found[-1].reason is None:
                found.append(_compared(runner, subject, other))
        return next((one for one in found if one.reason is not None), found[0])

    pool = ThreadPoolExecutor(runner.side_by_side)
    findings: dict[Variant, Finding] = {}
    try:
        found = pool.map(examine, subjects) if runner.side_by_side > 1 else map(examine, subjects)
        for subject, finding in zip(subjects, found, strict=True):
            findings[subject.variant] = finding
            progress(len(findings), len(subjects))
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        runner.program.close_forks()
        raise
    finally:
        pool.shutdown()
    return findings


def _checked(runner: CallRunner, subject: Subject, check: Path, folder: Path) -> str | None:
    """Runs the check build: why its accesses are not those of the trace and of the map, or None. Every thread records into a
    part of the file of its own."""
    assert runner.lifted is not None
    file = folder / f"{subject.variant}.records"
    anew = is_dynamic(runner.lifted.body)  # then one thread may do all
    part = (sum if anew else max)(2 * t.accesses for t in runner.traces) + VERIFY.spare_records
    try:
        with runner.program.fork() as copy:
            records = (file, part * runner.threads) if subject.remapped is None else None
            result = copy.run(copy.load(check), records=records)
        if result.mismatches:
            where = "" if result.first_mismatch is None else f", first by reference {result.first_mismatch[0]}"
            return f"{result.mismatches} accesses do not follow the new layout's map{where}"
        if subject.remapped is None:
            return _unlike_trace(file, runner.traces, runner.lifted, part, anew)
        least, most = subject.remapped
        if not least <= result.remapped <= most:
            return f"{result.remapped} accesses were re-indexed, {most} were traced"
        return None
    except SnapshotError as error:
        return how_it_failed(error)
    finally:
        file.unlink(missing_ok=True)


def how_it_failed(error: SnapshotError, *, calls: bool = False) -> str:
    """Why a mock-up did not come to its end. Where a way ends that no compared call took, the mock-up has a trap. ``calls``:
    it is one of another layout, and calls functions as the original does, for which its places hold nothing."""
    died = calls and "SIGSEGV" in str(error)
    return NOT_TAKEN if "SIGILL" in str(error) else f"{error}{TOUCHED if died else ''}"


def _unlike_trace(file: Path, traces: Sequence[Trace], lifted: Lifted, part: int, anew: bool) -> str | None:
    """Why the accesses that the threads recorded are not those of their traces, or None."""
    words = np.memmap(file, np.uint64, "r") if file.stat().st_size else np.empty(0, np.uint64)
    if anew and traces[0].threads:
        problems = check_shared(words[words != 0], traces, lifted)
        return f"{len(problems)} references differ from the trace: {problems[0]}" if problems else None
    for trace in traces:
        number = trace.threads[0].number if trace.threads else 0
        mine = words[part * number : part * (number + 1)]
        made = mine[: np.count_nonzero(mine)]  # no record is 0, and they stand without gaps
        problems = check_records(np.asarray(made), trace, lifted, complete=len(made) < part)
        if problems:
            whose = f" of thread {number}" if trace.threads else ""
            return f"{len(problems)} references{whose} differ from the trace: {problems[0]}"
    return None


def _compared(runner: CallRunner, subject: Subject, poison: int) -> Finding:
    """Runs the mock-up and compares what it left behind with what the original did."""
    with runner.copy() as copy:
        try:
            number, new = runner.load(copy, subject)
            result = copy.run(number, forbidden=subject.forbidden, poison=poison)
        except SnapshotError as error:
            return Finding(how_it_failed(error, calls=subject.remapped is not None and runner.calls))
        memory = compare(runner.before, runner.original, copy, (*runner.apart, *new), changes=False)
        ulp = farthest(runner.sums, runner.original.read, copy.read)
    reason = None
    if runner.expected is not None and runner.lifted is not None and outcome(result, runner.lifted) != runner.expected:
        reason = "the returned value differs"
    elif not memory.equal:
        reason = "the written bytes differ" + (f", first at {memory.differences[0][0]:#x}" if memory.differences else "")
    elif ulp > runner.rounding:
        reason = f"a sum of all threads is {ulp} units of the last place from the original's, more than rounding explains"
    elif runner.changed == 0 and runner.only_memory:
        reason = NOTHING_CHANGED
    return Finding(reason, memory.bytes_compared, runner.changed, ulp if reason is None else 0)


def live_outs(registers: Registers, lifted: Lifted) -> tuple[bytes, ...]:
    """The values of the lifted hotspot's live-out registers, as bytes; of a loop those that are read where it was left."""
    values = []
    for out in lifted.live_outs:
        if out.read_at is not None and registers.rip not in out.read_at:
            continue
        location = out.location
        number = getattr(location, "number")  # noqa: B009 - Gpr and Lane both have one
        if hasattr(location, "index"):
            raw = registers.vector[number][8 * location.index : 8 * location.index + 8]
        else:
            raw = (registers.rip if location == RIP else registers.gpr[number]).to_bytes(8, "little")
        values.append(raw if out.half is None else raw[4 * out.half : 4 * out.half + 4])
    return tuple(values)


def outcome(result: RunResult, lifted: Lifted) -> Outcome:
    """The values of the live-out registers after each call."""
    if not result.returned:
        return (live_outs(result.registers, lifted),)
    return tuple(_returned(each, lifted) for each in result.returned)


def _returned(each: bytes, lifted: Lifted) -> tuple[bytes, ...]:
    """Of a call of a batch: rax and rdx, 8 bytes each, then xmm0 and xmm1."""
    values = []
    for out in lifted.live_outs:
        place = out.location
        at = 8 * (place.number == 2) if isinstance(place, Gpr) else 16 + 16 * place.number + 8 * place.index
        values.append(each[at : at + 8] if out.half is None else each[at + 4 * out.half : at + 4 * out.half + 4])
    return tuple(values)


def added(before: StoppedProgram, after: StoppedProgram) -> tuple[Range, ...]:
    """Memory mapped in ``after`` but not in ``before``: the mock-ups and what the agent keeps for them."""
    known = [Range(m.start, m.end) for m in before.mappings()]
    return without([Range(m.start, m.end) for m in after.mappings()], known)


def without(ranges: Iterable[Range], known: Iterable[Range]) -> tuple[Range, ...]:
    """The parts of ``ranges`` that none of ``known`` holds; of each the ranges do not overlap. In one walk over both, as a
    program may have tens of thousands of mappings."""
    found, holes, behind = [], sorted((r.start, r.end) for r in known), 0
    for piece in sorted(ranges, key=lambda r: r.start):
        at = piece.start
        while behind < len(holes) and holes[behind][1] <= at:
            behind += 1
        number = behind
        while number < len(holes) and holes[number][0] < piece.end:
            start, end = holes[number]
            if start > at:
                found.append(Range(at, start))
            at, number = max(at, end), number + 1
        if at < piece.end:
            found.append(Range(at, piece.end))
    return tuple(found)
