"""Does a mock-up compute what the original computes, where a team of threads runs it? Restored copies tell.

A fork has no threads but one, so the state before the call is the parked program itself, and the original and every mock-up
run in whole copies of it. The original runs twice: what its threads leave behind may depend on who comes first, and then
nothing can be compared, but for sums of floating-point numbers (:mod:`layout_advise.verify.order_dependent_sums`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path, PurePath

import numpy as np

from layout_advise.errors import SnapshotError
from layout_advise.layoutalgebra.sets.spans import spans
from layout_advise.mockup.evidence.check_records import check_records, check_shared
from layout_advise.mockup.ir.lifted import Lifted
from layout_advise.mockup.machine.openmp_runtime import is_dynamic
from layout_advise.mockup.timing.variants import Variant
from layout_advise.tracer.process.stopped_program import Range, StoppedProgram
from layout_advise.tracer.snapshot.agent_process import AgentProcess
from layout_advise.tracer.snapshot.compare import compare
from layout_advise.tracer.trace.trace import Mapping as Mapped
from layout_advise.tracer.trace.trace import Trace
from layout_advise.verify.order_dependent_sums import SharedSum, allowed, farthest, order_dependent
from layout_advise.verify.verify import Finding, Subject, added, all_moved

_TCB_BYTES = 4096
_RUNTIME = ("libgomp", "libomp")
_LIBC = ("libc.so", "libc-", "ld-linux")
MOST_LOOKS = 8


def verify_team(
    program: StoppedProgram,
    subjects: Sequence[Subject],
    lifted: Lifted,
    trace: Trace,
    folder: Path,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Mapping[Variant, Finding]:
    """Compare every subject with the original, ``trace`` having the threads apart. Raises SnapshotError when the original
    cannot be run, or leaves other bytes behind each time."""
    assert isinstance(program, AgentProcess)
    own = threads_own(trace)
    sums = order_dependent(lifted, trace) if subjects else ()
    own += loaders_own(program, subjects, own)
    apart = [*own, *(s.range for s in sums)]
    verdicts: dict[Variant, Finding] = {}
    with program.fork() as original:
        original.run(0)
        changed = compare(program, original, original, own).bytes_changed
        with program.fork() as again:
            again.run(0)
            if not compare(program, original, again, apart, changes=False).equal:
                what = "the parallel region cannot be compared"
                raise SnapshotError(what, "it leaves other bytes behind when it runs again: its threads race")
            within = allowed(farthest(sums, original.read, again.read), lifted, trace) if sums else 0
        for done, subject in enumerate(subjects):
            progress(done, len(subjects))
            problem = _check(program, subject, trace, lifted, folder)
            verdicts[subject.variant] = (
                Finding(problem) if problem else _compare(program, original, subject, apart, changed, (sums, within))
            )
    return verdicts


def copied(program: AgentProcess, threads: int | None) -> AgentProcess:
    """A whole copy, in which the region runs with so many threads (None: as many as the program itself gives it)."""
    copy = program.fork()
    try:
        if threads is not None:
            copy.threads(threads)
    except BaseException:
        copy.close()
        raise
    return copy


def verify_with(
    program: AgentProcess, threads: int, subjects: Sequence[Subject], trace: Trace
) -> tuple[bool, Mapping[Variant, Finding]]:
    """Compare what ``subjects`` leave behind with what the original does, both run by ``threads`` threads; and whether the
    original leaves the same as with the program's own number of threads. Raises SnapshotError where the region cannot run
    with so many, or leaves other bytes behind each time."""
    own = threads_own(trace)
    with copied(program, threads) as original, copied(program, None) as usual:
        own += empty_region(program, original, own)
        own += loaders_own(program, subjects, own)
        original.run(0)
        usual.run(0)
        changed = compare(program, original, original, own).bytes_changed
        with copied(program, threads) as again:
            again.run(0)
            if not compare(program, original, again, own, changes=False).equal:
                raise SnapshotError("the region cannot be compared", "it leaves other bytes behind when it runs again")
        same = compare(program, usual, original, own, changes=False).equal
        return same, {s.variant: _compare(program, original, s, own, changed, threads=threads) for s in subjects}


def empty_region(program: AgentProcess, copy: AgentProcess, own: Sequence[Range]) -> list[Range]:
    """The words that differ in ``copy``, in which an empty region has run with another number of threads: variables of libc
    and the runtime that lie between the program's (of the thread lists, of whether there are threads)."""
    found: list[Range] = []
    for _ in range(MOST_LOOKS):
        differences = compare(program, program, copy, [*own, *found], changes=False).differences
        if not differences:
            break
        found += [Range(word, word + 8) for word in {address & ~7 for address, _, _ in differences}]
    return found


def loaders_own(program: AgentProcess, subjects: Sequence[Subject], own: Sequence[Range]) -> list[Range]:
    """The words that differ where a mock-up has been loaded and nothing has run: flags in the loader's list of modules."""
    if not subjects:
        return []
    with program.fork() as copy:
        try:
            copy.load(subjects[0].mockup)
        except SnapshotError:
            return []  # told of where it is to be run
        return empty_region(program, copy, [*own, *added(program, copy)])


def threads_own(trace: Trace) -> list[Range]:
    """The ranges that a call changes and that are not the program's data: the stacks and control blocks of the workers, and
    what the runtime allocated for the team, or had the C library allocate."""
    page = os.sysconf("SC_PAGE_SIZE")
    top = trace.registers.gpr[4]
    workers = [t for t in trace.threads if not t.stack <= top < t.fs_base or t.fs_base != trace.registers.fs_base]
    stacks = [Range(t.stack, -(-(t.fs_base + _TCB_BYTES) // page) * page) for t in workers if t.stack < t.fs_base]
    code = [m for m in trace.mappings if PurePath(m.path).name.startswith(_RUNTIME)]
    libc = [m for m in trace.mappings if PurePath(m.path).name.startswith(_LIBC)]
    blocks = [
        Range(a.address, a.address + a.bytes)
        for a in trace.allocations
        if _within(next((pc for pc in (a.site, *a.stack) if not _within(pc, libc)), a.site), code)
    ]
    used = [span for stream in trace.streams if stream is not None for span in spans(stream)]
    # the program may ask the runtime for memory (omp_alloc): what the region uses is the program's own
    free = [b for b in blocks if not any(b.start <= span.low and span.high < b.end for span in used)]
    return [*stacks, *free]


def _within(address: int, mappings: Sequence[Mapped]) -> bool:
    return any(m.start <= address < m.end for m in mappings)


def _check(program: AgentProcess, subject: Subject, trace: Trace, lifted: Lifted, folder: Path) -> str | None:
    """Run the check build: why its accesses are not those of the trace and of the map, or None. Every thread records into a
    part of the file of its own."""
    if subject.check is None:
        return None
    file = folder / "check.records"
    alone = [trace.of_thread(thread) for thread in trace.threads]
    anew = is_dynamic(lifted.body)  # then one thread may do all
    part = (sum if anew else max)(2 * t.accesses for t in alone) + 4096
    try:
        with program.fork() as copy:
            capacity = part * copy.team()
            result = copy.run(copy.load(subject.check), records=(file, capacity) if subject.remapped is None else None)
        if result.mismatches:
            where = "" if result.first_mismatch is None else f", first by reference {result.first_mismatch[0]}"
            return f"{result.mismatches} accesses do not follow the new layout's map{where}"
        if subject.remapped is not None:
            return all_moved(result.remapped, subject.remapped)
        words = np.memmap(file, dtype=np.uint64, mode="r")
        if anew:
            problems = check_shared(words[words != 0], alone, lifted)
            return f"{len(problems)} references differ from the trace: {problems[0]}" if problems else None
        for thread, own in zip(trace.threads, alone, strict=True):
            mine = words[part * thread.number : part * (thread.number + 1)]
            made = mine[: np.count_nonzero(mine)]  # no record is 0, and they stand without gaps
            problems = check_records(np.asarray(made), own, lifted, complete=len(made) < part)
            if problems:
                return f"{len(problems)} references of thread {thread.number} differ from the trace: {problems[0]}"
        return None
    except SnapshotError as error:
        return str(error)
    finally:
        file.unlink(missing_ok=True)


def _compare(
    program: AgentProcess,
    original: AgentProcess,
    subject: Subject,
    own: Sequence[Range],
    changed: int,
    sums: tuple[Sequence[SharedSum], int] = ((), 0),
    threads: int | None = None,
) -> Finding:
    with copied(program, threads) as copy:
        try:
            number = copy.load(subject.mockup)
            new = added(program, copy)
            copy.run(number, forbidden=subject.forbidden)
        except SnapshotError as error:
            return Finding(str(error))
        found = compare(program, original, copy, [*own, *new], changes=False)
        ulp = farthest(sums[0], original.read, copy.read)
    if not found.equal:
        place = f", first at {found.differences[0][0]:#x}" if found.differences else ""
        return Finding(f"the written bytes differ{place}", found.bytes_compared, changed)
    if ulp > sums[1]:
        why = f"a sum of all threads is {ulp} units of the last place from the original's, more than rounding explains"
        return Finding(why, found.bytes_compared, changed)
    if changed == 0:
        return Finding("the call changes no memory: nothing to compare", found.bytes_compared, 0)
    return Finding(None, found.bytes_compared, changed, ulp)
