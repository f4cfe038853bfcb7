"""Calls run in forks of the parked program.

One fork ("the witness") has every mock-up loaded and holds the state before the call; the original and each mock-up run in
forks of it; what they wrote, and the registers they return, are compared.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from layout_advise.errors import SnapshotError
from layout_advise.mockup.ir.lifted import Lifted
from layout_advise.mockup.lift.flow import RIP
from layout_advise.mockup.timing.variants import Variant
from layout_advise.tracer.process.stopped_program import Range, RunResult, StoppedProgram
from layout_advise.tracer.snapshot.compare import compare
from layout_advise.tracer.trace.trace import Trace
from layout_advise.verify.overwritten import overwritten, spoil
from layout_advise.verify.policy import VERIFY
from layout_advise.verify.verify import CallRunner, Subject, added, outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class ForkRunner(CallRunner):
    """Runs calls in forks of the witness, which knows the mock-ups by ``numbers``."""

    numbers: Mapping[Variant, int]

    def load(self, copy: StoppedProgram, subject: Subject) -> tuple[int, tuple[Range, ...]]:
        """The witness has loaded all."""
        return self.numbers[subject.variant], ()


@contextmanager
def in_forks(program: StoppedProgram, subjects: Sequence[Subject], lifted: Lifted, trace: Trace) -> Iterator[ForkRunner]:
    """The runner, while the witness and the original live. Where a call changes nothing, all begin with other bytes in what
    it only writes. Raises SnapshotError when the original cannot be run."""
    with program.fork() as witness, ExitStack() as stack:
        numbers = {subject.variant: witness.load(subject.mockup) for subject in subjects}
        new = added(program, witness)
        nothing = all(out.location == RIP for out in lifted.live_outs)  # is returned, but for where the hotspot is left
        original, expected, changed = _original(witness, new, stack)
        if changed == 0 and nothing and (places := overwritten(trace)):
            spoil(witness, places)
            try:
                original, expected, changed = _original(witness, new, stack)
            except SnapshotError:  # what is not traced reads it after all
                spoil(witness, places)
        yield ForkRunner(
            program=program,
            before=witness,
            original=original,
            apart=new,
            changed=changed,
            expected=outcome(expected, lifted),
            only_memory=nothing,
            side_by_side=forks_at_once(program),
            numbers=numbers,
            lifted=lifted,
            traces=(trace,),
        )


def forks_at_once(program: StoppedProgram) -> int:
    """How many mock-ups may be examined at a time: every process may copy all of the program's memory."""
    memory = sum(m.end - m.start for m in program.mappings() if m.permissions.startswith("rw"))
    return min(VERIFY.side_by_side, len(os.sched_getaffinity(0))) if memory <= VERIFY.most_copied else 1


def _original(witness: StoppedProgram, new: Sequence[Range], stack: ExitStack) -> tuple[StoppedProgram, RunResult, int]:
    """The original's run from the state of ``witness``: the process after it, what it returned, and how many bytes it
    changed."""
    original = stack.enter_context(witness.fork())
    expected = original.run(0)
    with witness.fork() as alone:  # what the program writes between the calls of a batch is not theirs
        before = alone if expected.returned and alone.put_back(0) else witness
        return original, expected, compare(before, original, original, new).bytes_changed
