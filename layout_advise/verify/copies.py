"""Calls run by a team of threads in restored copies.

A fork has no threads but one, so the state before the call is the parked program itself, and the original and every mock-up
run in whole copies of it. The original runs twice: what its threads leave behind may depend on who comes first, and then
nothing can be compared, but for sums of floating-point numbers (:mod:`layout_advise.verify.order_dependent_sums`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import PurePath

from layout_advise.errors import SnapshotError
from layout_advise.layoutalgebra.sets.spans import spans
from layout_advise.mockup.ir.lifted import Lifted
from layout_advise.tracer.process.stopped_program import Range, StoppedProgram
from layout_advise.tracer.snapshot.agent_process import AgentProcess
from layout_advise.tracer.snapshot.compare import compare
from layout_advise.tracer.trace.trace import Mapping, Trace
from layout_advise.verify.order_dependent_sums import allowed, farthest, order_dependent
from layout_advise.verify.policy import VERIFY
from layout_advise.verify.verify import CallRunner, Subject, added

_TCB_BYTES = 4096
_RUNTIME = ("libgomp", "libomp")
_LIBC = ("libc.so", "libc-", "ld-linux")


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamRunner(CallRunner):
    """Runs calls in whole copies of the parked program. ``count``: how many threads run the region (None: as many as the
    program itself gives it)."""

    count: int | None

    def copy(self) -> StoppedProgram:
        """A whole copy, in which the region runs with so many threads."""
        return _copied(self.before, self.count)

    def load(self, copy: StoppedProgram, subject: Subject) -> tuple[int, tuple[Range, ...]]:
        """The mock-up is loaded into the copy."""
        return copy.load(subject.mockup), added(self.before, copy)

    def as_usual(self) -> bool:
        """Tells whether the original leaves the same behind with the program's own number of threads."""
        with _copied(self.before, None) as usual:
            usual.run(0)
            return compare(self.before, usual, self.original, self.apart, changes=False).equal


@contextmanager
def in_copies(
    program: StoppedProgram, subjects: Sequence[Subject], lifted: Lifted | None, trace: Trace, threads: int | None = None
) -> Iterator[TeamRunner]:
    """The runner, while the original's copy lives; ``trace`` has the threads apart. Without ``lifted`` no check build can be
    run and no sum is compared up to rounding. Raises SnapshotError when the region cannot run, with so many ``threads``, or
    leaves other bytes behind each time."""
    assert isinstance(program, AgentProcess)
    own = threads_own(trace)
    sums = order_dependent(lifted, trace) if lifted is not None and subjects else ()
    with _copied(program, threads) as original:
        if threads is not None:
            own += empty_region(program, original, own)
        own += loaders_own(program, subjects, own)
        most = original.team()
        original.run(0)
        changed = compare(program, original, original, own).bytes_changed
        apart, rounding = (*own, *(s.range for s in sums)), 0
        with _copied(program, threads) as again:
            again.run(0)
            if not compare(program, original, again, apart, changes=False).equal:
                what = "the parallel region cannot be compared"
                raise SnapshotError(what, "it leaves other bytes behind when it runs again: its threads race")
            if lifted is not None and sums:
                rounding = allowed(farthest(sums, original.read, again.read), lifted, trace)
        yield TeamRunner(
            program=program,
            before=program,
            original=original,
            apart=apart,
            changed=changed,
            sums=sums,
            rounding=rounding,
            lifted=lifted,
            traces=tuple(trace.of_thread(thread) for thread in trace.threads),
            threads=most,
            count=threads,
        )


def _copied(program: StoppedProgram, threads: int | None) -> AgentProcess:
    copy = program.fork()
    assert isinstance(copy, AgentProcess)
    try:
        if threads is not None:
            copy.threads(threads)
    except BaseException:
        copy.close()
        raise
    return copy


def empty_region(program: AgentProcess, copy: AgentProcess, own: Sequence[Range]) -> list[Range]:
    """The words that differ in ``copy``, in which an empty region has run with another number of threads: variables of libc
    and the runtime that lie between the program's (of the thread lists, of whether there are threads)."""
    found: list[Range] = []
    for _ in range(VERIFY.most_looks):
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


def _within(address: int, mappings: Sequence[Mapping]) -> bool:
    return any(m.start <= address < m.end for m in mappings)
