"""Does a mock-up compute what the original computes? Effects runs in forks of the parked program.

One fork ("the witness") has every mock-up loaded and holds the state before the call; the original and each mock-up run in
forks of it; what they wrote, and the registers they return, are compared. The old block is inaccessible meanwhile, so that
one access that was not re-indexed ends the run. A check build has every access compared with the map before that.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from layout_advise.errors import SnapshotError
from layout_advise.mockup.evidence.check_records import check_records
from layout_advise.mockup.ir.effects import Gpr
from layout_advise.mockup.ir.lifted import Lifted
from layout_advise.mockup.lift.flow import RIP
from layout_advise.mockup.timing.variants import Variant
from layout_advise.tracer.process.stopped_program import Range, RunResult, StoppedProgram
from layout_advise.tracer.snapshot.compare import compare
from layout_advise.tracer.trace.trace import Registers, Trace
from layout_advise.verify.overwritten import overwritten, spoil

SIDE_BY_SIDE = 4
MOST_COPIED = 2 << 30
"""Bytes of memory of the program; with more, one mock-up is examined after the other."""
NOTHING_CHANGED = "the call returns nothing, and leaves memory as it was: what it writes, if anything, was there already"
"""Why a mock-up could not be told from one that does nothing."""


NOT_TAKEN = "it took a way that no compared call of the original took"
"""Why a mock-up ended before its end."""


@dataclass(frozen=True, slots=True)
class Subject:
    """A mock-up to verify. ``forbidden`` is the memory of the structures that it re-lays; ``remapped`` how many accesses
    of one call must go to new buffers (None: do not check, for the identity)."""

    variant: Variant
    mockup: Path
    check: Path | None
    forbidden: tuple[Range, ...]
    remapped: int | None


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


def live_outs(registers: Registers, lifted: Lifted) -> tuple[bytes, ...]:
    """The values of the lifted hotspot's live-out registers, as bytes."""
    values = []
    for out in lifted.live_outs:
        location = out.location
        number = getattr(location, "number")  # noqa: B009 - Gpr and Lane both have one
        if hasattr(location, "index"):
            raw = registers.vector[number][8 * location.index : 8 * location.index + 8]
        else:
            raw = (registers.rip if location == RIP else registers.gpr[number]).to_bytes(8, "little")
        values.append(raw if out.half is None else raw[4 * out.half : 4 * out.half + 4])
    return tuple(values)


def outcome(result: RunResult, lifted: Lifted) -> tuple[tuple[bytes, ...], ...]:
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


def check_subject(program: StoppedProgram, subject: Subject, trace: Trace, lifted: Lifted, folder: Path) -> str | None:
    """Run the check build: why its accesses are not those of the trace and of the map, or None."""
    if subject.check is None:
        return None
    file = folder / f"{subject.variant}.records"
    capacity = 2 * trace.accesses + 4096
    try:
        with program.fork() as fork:
            records = (file, capacity) if subject.remapped is None else None
            result = fork.run(fork.load(subject.check), records=records)
        if result.mismatches:
            where = "" if result.first_mismatch is None else f", first by reference {result.first_mismatch[0]}"
            return f"{result.mismatches} accesses do not follow the new layout's map{where}"
        if subject.remapped is not None:
            return all_moved(result.remapped, subject.remapped)
        words = np.fromfile(file, dtype=np.uint64)
        problems = check_records(words, trace, lifted, complete=result.records <= capacity)
        return f"{len(problems)} references differ from the trace: {problems[0]}" if problems else None
    except SnapshotError as error:
        return _how_it_failed(error)
    finally:
        file.unlink(missing_ok=True)


def _how_it_failed(error: SnapshotError) -> str:
    """Why a mock-up did not come to its end. Where a way ends that no compared call took, the mock-up has a trap."""
    return NOT_TAKEN if "SIGILL" in str(error) else str(error)


def all_moved(moved: int, traced: int) -> str | None:
    """Why not all traced accesses went to the new layout, or None."""
    return None if moved == traced else f"{moved} accesses were re-indexed, {traced} were traced"


def verify(
    program: StoppedProgram,
    subjects: Sequence[Subject],
    lifted: Lifted,
    trace: Trace,
    folder: Path,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Mapping[Variant, Finding]:
    """Compare every subject with the original. Where a call changes nothing, they begin with other bytes in what it only
    writes. Raises SnapshotError when the original cannot be run."""
    with program.fork() as witness, ExitStack() as stack:
        numbers = {subject.variant: witness.load(subject.mockup) for subject in subjects}
        new = added(program, witness)
        original, expected, changed = _original(witness, new, stack)
        if changed == 0 and _returns_nothing(lifted) and (places := overwritten(trace)):
            spoil(witness, places)
            try:
                original, expected, changed = _original(witness, new, stack)
            except SnapshotError:  # what is not traced reads it after all
                spoil(witness, places)

        def examine(subject: Subject) -> Finding:
            problem = check_subject(program, subject, trace, lifted, folder)
            if problem:
                return Finding(problem)
            return _compare(witness, original, expected, subject, numbers[subject.variant], lifted, new, changed)

        findings = _at_once(program, examine, subjects, progress)
    return {subject.variant: finding for subject, finding in zip(subjects, findings, strict=True)}


def _at_once(
    program: StoppedProgram,
    examine: Callable[[Subject], Finding],
    subjects: Sequence[Subject],
    progress: Callable[[int, int], None],
) -> list[Finding]:
    """The findings in order. A few subjects are examined at a time, each in its own processes; if that is broken off, what
    they run is killed, so that nobody waits for a mock-up that hangs."""
    memory = sum(m.end - m.start for m in program.mappings() if m.permissions.startswith("rw"))
    many = memory <= MOST_COPIED  # every process may copy all of it
    pool = ThreadPoolExecutor(min(SIDE_BY_SIDE, len(os.sched_getaffinity(0))) if many else 1)
    findings = []
    try:
        for finding in pool.map(examine, subjects):
            findings.append(finding)
            progress(len(findings), len(subjects))
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        program.close_forks()
        raise
    finally:
        pool.shutdown()
    return findings


def _original(witness: StoppedProgram, new: Sequence[Range], stack: ExitStack) -> tuple[StoppedProgram, RunResult, int]:
    """The original's run from the state of ``witness``: the process after it, what it returned, and how many bytes it
    changed."""
    original = stack.enter_context(witness.fork())
    expected = original.run(0)
    return original, expected, compare(witness, original, original, new).bytes_changed


def _returns_nothing(lifted: Lifted) -> bool:
    return all(out.location == RIP for out in lifted.live_outs)


def added(before: StoppedProgram, after: StoppedProgram) -> tuple[Range, ...]:
    """Memory mapped in ``after`` but not in ``before``: the mock-ups and what the agent keeps for them."""
    found = []
    known = sorted((m.start, m.end) for m in before.mappings())
    for mapping in after.mappings():
        at = mapping.start
        for start, end in known:
            if end <= at or start >= mapping.end:
                continue
            if start > at:
                found.append(Range(at, start))
            at = end
        if at < mapping.end:
            found.append(Range(at, mapping.end))
    return tuple(found)


def _compare(
    witness: StoppedProgram,
    original: StoppedProgram,
    expected: RunResult,
    subject: Subject,
    number: int,
    lifted: Lifted,
    new: Sequence[Range],
    changed: int,
) -> Finding:
    with witness.fork() as fork:
        try:
            result = fork.run(number, forbidden=subject.forbidden)
        except SnapshotError as error:
            return Finding(_how_it_failed(error))
        found = compare(witness, original, fork, new, changes=False)
    if outcome(result, lifted) != outcome(expected, lifted):
        return Finding("the returned value differs", found.bytes_compared, changed)
    if not found.equal:
        place = f", first at {found.differences[0][0]:#x}" if found.differences else ""
        return Finding(f"the written bytes differ{place}", found.bytes_compared, changed)
    if changed == 0 and _returns_nothing(lifted):
        return Finding(NOTHING_CHANGED, found.bytes_compared, 0)
    return Finding(None, found.bytes_compared, changed)
