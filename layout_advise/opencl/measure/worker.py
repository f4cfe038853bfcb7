"""A fresh process that builds, runs and times the variants of a job: ``python -m layout_advise.opencl.measure.worker``.

The job comes pickled on standard input, the outcomes go pickled to standard output; both ends are this program.
"""

from __future__ import annotations

import os
import pickle
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from layout_advise.errors import LayoutAdviseError
from layout_advise.mockup.timing.statistics import undisturbed
from layout_advise.opencl.host.launch import Bytes, Launch
from layout_advise.opencl.host.platforms import opencl
from layout_advise.opencl.host.session import DeviceSession, LaunchTime
from layout_advise.opencl.host.variants import KernelVariant
from layout_advise.opencl.measure.conversion import converted
from layout_advise.opencl.measure.jobs import KernelJob, VariantOutcome
from layout_advise.opencl.measure.moves import moves_of
from layout_advise.opencl.measure.record import RecordJob, recorded_items
from layout_advise.opencl.measure.verify import compared
from layout_advise.opencl.policy import OPENCL


@dataclass(frozen=True, slots=True, eq=False)
class _Ready:
    """A launch on the device; ``pristine`` is what its buffers hold before each call."""

    launch: Launch
    kernel: Any
    buffers: tuple[Any, ...]
    pristine: tuple[Any, ...]

    def call(self, session: DeviceSession) -> LaunchTime:
        """Restores the buffers, which is not timed, and launches once."""
        for source, to, data in zip(self.pristine, self.buffers, self.launch.buffers, strict=True):
            session.copy(source, to, len(data))
        one = self.launch
        return session.launch(self.kernel, one.global_size, one.local_size, one.offset)

    def results(self, session: DeviceSession) -> tuple[Bytes, ...]:
        """The content of the buffers."""
        return tuple(session.read(b, len(d)) for b, d in zip(self.buffers, self.launch.buffers, strict=True))


def carried_out(job: KernelJob) -> list[VariantOutcome]:
    """The outcome of each variant; one that does not build or run says why."""
    session = DeviceSession(job.device.find())
    ready, problems = _all_prepared(session, job)
    outcomes: list[VariantOutcome] = []
    truth: list[tuple[Bytes, ...]] = []
    for number, variant in enumerate(job.variants):
        left = _left(session, number, ready, problems)
        if left is None:
            outcomes.append(VariantOutcome(0.0, 0.0, problem=problems[number]))
            continue
        truth = left if number == 0 else truth
        found = compared(variant, left, job.variants[0], truth) if truth else None
        outcomes.append(VariantOutcome(0.0, 0.0, compared=found))
    times = _timed(session, job, ready)
    return [_with_times(session, job, n, outcome, times.get(n, [])) for n, outcome in enumerate(outcomes)]


def in_turn(numbers: Sequence[int], turn: int) -> list[int]:
    """The numbers in their order, another one first in each turn."""
    first = turn % max(len(numbers), 1)
    return [*numbers[first:], *numbers[:first]]


def _all_prepared(session: DeviceSession, job: KernelJob) -> tuple[list[list[_Ready]], dict[int, str]]:
    """The variants on the device, and why some are not. All buffers are made before anything is run, and in each turn those
    of another variant first: buffers that were made behind the first calls of the original lay worse on PoCL, so that a
    stencil took 12 % more than itself."""
    ready: list[list[_Ready]] = [[] for _ in job.variants]
    problems: dict[int, str] = {}
    for number in in_turn(range(len(job.variants)), job.turn):
        try:
            ready[number] = _prepared(session, job.variants[number])
        except _errors() as error:
            problems[number] = _said(error)
    return ready, problems


def _left(
    session: DeviceSession, number: int, ready: list[list[_Ready]], problems: dict[int, str]
) -> list[tuple[Bytes, ...]] | None:
    """The buffers that the first calls of a variant leave; None, and a problem, where it does not run."""
    if number in problems:
        return None
    try:
        return _first_calls(session, ready[number])
    except _errors() as error:
        problems[number] = _said(error)
        ready[number] = []
        return None


def _errors() -> tuple[type[Exception], ...]:
    return LayoutAdviseError, opencl().Error, MemoryError


def _said(error: Exception) -> str:
    return " ".join((error.line() if isinstance(error, LayoutAdviseError) else str(error)).split())


def _first_calls(session: DeviceSession, made: list[_Ready]) -> list[tuple[Bytes, ...]]:
    """The buffers that each launch leaves; this call also makes the device compile for the work-group size."""
    left = []
    for one in made:
        one.call(session)
        left.append(one.results(session))
    return left


def _with_times(
    session: DeviceSession, job: KernelJob, number: int, outcome: VariantOutcome, calls: list[list[LaunchTime]]
) -> VariantOutcome:
    variant = job.variants[number]
    if outcome.problem:
        return outcome
    weights = [launch.calls for launch in variant.launches]
    device, wall, cpu = (
        sum(n * undisturbed([getattr(t, kind) for t in row]) for n, row in zip(weights, calls, strict=False))
        for kind in ("device", "wall", "cpu")
    )
    conversion = converted(session, variant, job.variants[0]) if job.conversions and variant.layouts else None
    walls = tuple(float(undisturbed([t.wall for t in row])) for row in calls)
    moves = moves_of(session, variant, job.variants[0]) if job.moves else ()
    return VariantOutcome(float(device), float(wall), float(cpu), "", outcome.compared, conversion, walls, moves)


def _prepared(session: DeviceSession, variant: KernelVariant) -> list[_Ready]:
    program = session.build(variant.source, variant.launches[0].options, variant.launches[0].name)
    made = []
    for launch in variant.launches:
        buffers = tuple(session.buffer(data) for data in launch.buffers)
        pristine = tuple(session.buffer(data) for data in launch.buffers)
        kernel = session.prepared(program, launch.kernel, launch.arguments, buffers)
        made.append(_Ready(launch, kernel, buffers, pristine))
    return made


def _timed(session: DeviceSession, job: KernelJob, ready: list[list[_Ready]]) -> dict[int, list[list[LaunchTime]]]:
    """Times by variant and launch; in each round every variant has its turn, another one first."""
    names = [n for n, made in enumerate(ready) if made]
    times: dict[int, list[list[LaunchTime]]] = {n: [[] for _ in ready[n]] for n in names}
    start = time.monotonic()
    done = 0
    while names and done < OPENCL.most_calls:
        if done >= OPENCL.fewest_calls and time.monotonic() - start > job.seconds * len(names):
            break
        for n in in_turn(names, job.turn + done):
            for k, one in enumerate(ready[n]):
                times[n][k].append(one.call(session))
        done += 1
    return times


def main() -> int:
    """Reads the job, writes the outcomes."""
    out = os.dup(1)
    os.dup2(2, 1)  # what drivers print must not mix with the answer
    try:
        job = pickle.load(sys.stdin.buffer)
        answer: object = recorded_items(job) if isinstance(job, RecordJob) else carried_out(job)
    except LayoutAdviseError as error:
        answer = error.line()
    with os.fdopen(out, "wb") as stream:
        pickle.dump(answer, stream)
    return 0


if __name__ == "__main__":
    sys.exit(main())
