"""Does a mock-up compute what the original computes? Effects runs in forks of the parked program.

One fork ("the witness") has every mock-up loaded and holds the state before the call; the original and each mock-up run in
forks of it; what they wrote, and the registers they return, are compared. The old block is inaccessible meanwhile, so that
one access that was not re-indexed ends the run. A check build has every access compared with the map before that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from layout_advise.errors import SnapshotError
from layout_advise.mockup.lifted import Lifted
from layout_advise.tracer.snapshot.compare import compare
from layout_advise.tracer.snapshot.protocol import Range, RunResult, StoppedProgram
from layout_advise.tracer.trace import Registers


@dataclass(frozen=True, slots=True)
class Subject:
    """A mock-up to verify. ``forbidden`` is the memory of the structures that it re-lays; ``remapped`` how many accesses
    of one call must go to new buffers (None: do not check, for the identity)."""

    name: str
    mockup: Path
    check: Path | None
    forbidden: tuple[Range, ...]
    remapped: int | None


@dataclass(frozen=True, slots=True)
class Verdict:
    """``reason`` is None where the bytes and registers were equal."""

    reason: str | None
    bytes_compared: int = 0
    bytes_changed: int = 0


def live_outs(registers: Registers, lifted: Lifted) -> tuple[bytes, ...]:
    """The values of the lifted hotspot's live-out registers, as bytes."""
    values = []
    for out in lifted.live_outs:
        location = out.location
        number = getattr(location, "number")  # noqa: B009 - Gpr and Lane both have one
        if hasattr(location, "index"):
            raw = registers.vector[number][8 * location.index : 8 * location.index + 8]
        else:
            raw = registers.gpr[number].to_bytes(8, "little")
        values.append(raw if out.half is None else raw[4 * out.half : 4 * out.half + 4])
    return tuple(values)


def check_subject(program: StoppedProgram, subject: Subject) -> str | None:
    """Run the check build: why its accesses are not those of the map, or None."""
    if subject.check is None:
        return None
    with program.fork() as fork:
        try:
            result = fork.run(fork.load(subject.check))
        except SnapshotError as error:
            return str(error)
    if result.mismatches:
        where = "" if result.first_mismatch is None else f", first by reference {result.first_mismatch[0]}"
        return f"{result.mismatches} accesses do not follow the new layout's map{where}"
    if subject.remapped is not None and result.remapped != subject.remapped:
        return f"{result.remapped} accesses were re-indexed, {subject.remapped} were traced"
    return None


def verify(
    program: StoppedProgram,
    subjects: Sequence[Subject],
    lifted: Lifted,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Mapping[str, Verdict]:
    """Compare every subject with the original. Raises SnapshotError when the original cannot be run."""
    verdicts: dict[str, Verdict] = {}
    with program.fork() as witness:
        numbers = {subject.name: witness.load(subject.mockup) for subject in subjects}
        with witness.fork() as original:
            expected = original.run(0)
            for done, subject in enumerate(subjects):
                progress(done, len(subjects))
                problem = check_subject(program, subject)
                verdicts[subject.name] = (
                    Verdict(problem)
                    if problem
                    else _compare(witness, original, expected, subject, numbers[subject.name], lifted)
                )
    return verdicts


def _compare(
    witness: StoppedProgram,
    original: StoppedProgram,
    expected: RunResult,
    subject: Subject,
    number: int,
    lifted: Lifted,
) -> Verdict:
    with witness.fork() as fork:
        try:
            result = fork.run(number, forbidden=subject.forbidden)
        except SnapshotError as error:
            return Verdict(str(error))
        found = compare(witness, original, fork)
    if live_outs(result.registers, lifted) != live_outs(expected.registers, lifted):
        return Verdict("the returned value differs", found.bytes_compared, found.bytes_changed)
    if not found.equal:
        place = f", first at {found.differences[0][0]:#x}" if found.differences else ""
        return Verdict(f"the written bytes differ{place}", found.bytes_compared, found.bytes_changed)
    if found.bytes_changed == 0 and not lifted.live_outs:
        return Verdict("the call neither changes memory nor returns anything: nothing to compare", found.bytes_compared, 0)
    return Verdict(None, found.bytes_compared, found.bytes_changed)
