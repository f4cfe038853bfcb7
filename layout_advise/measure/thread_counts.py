"""A parallel region by number of threads: the original, the unchanged mock-up and one candidate.

The program's own runtime starts the region with another number of threads in restored processes. What the mock-ups leave
behind is compared there too, with the same number; a number for which that cannot be done is refused by name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from layout_advise.errors import SnapshotError
from layout_advise.measure.mode import Mode
from layout_advise.measure.policy import MEASURE
from layout_advise.mockup.timing.measure import measure
from layout_advise.mockup.timing.plan import Memory, Restorer, Timed, TimingPlan
from layout_advise.mockup.timing.restored import without
from layout_advise.mockup.timing.statistics import Ratio, undisturbed, undisturbed_ratio
from layout_advise.mockup.timing.timings import Timings
from layout_advise.mockup.timing.variants import ORIGINAL, Variant
from layout_advise.reports.model.candidate import Interval
from layout_advise.reports.model.threads import ByThreads, ThreadCount, Time
from layout_advise.tracer.process.stopped_program import Range, StoppedProgram
from layout_advise.tracer.snapshot.agent_process import AgentProcess
from layout_advise.tracer.trace.trace import Trace
from layout_advise.verify.copies import in_copies
from layout_advise.verify.verify import Subject, verify


@dataclass(frozen=True, slots=True)
class Runner:
    """The mock-ups that are run with each number of threads besides the original; the ``identity`` and the ``candidate``
    None where there is none."""

    subjects: tuple[Subject, ...]
    identity: Variant | None
    candidate: Variant | None


@dataclass(slots=True)
class _At:
    """The findings with one number of threads."""

    threads: int
    reason: str | None = None
    same: bool | None = None
    failed: dict[Variant, str] = field(default_factory=dict)
    timings: Timings = field(default_factory=Timings)
    shares: dict[Variant, tuple[float, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class WithThreads:
    """Restored processes in which the region runs with so many threads."""

    snapshots: Restorer
    threads: int

    def restore(self) -> StoppedProgram:
        """A fresh one."""
        program = self.snapshots.restore()
        assert isinstance(program, AgentProcess)
        try:
            program.threads(self.threads)
        except BaseException:
            program.close()
            raise
        return program


def numbers(cores: int, own: int) -> tuple[int, ...]:
    """The numbers of threads to try: all up to the machine's cores, and the program's own where it does not exceed them."""
    if cores <= MEASURE.every_thread_count:
        return tuple(range(1, cores + 1))
    powers = {1 << k for k in range(cores.bit_length()) if 1 << k <= cores}
    return tuple(sorted(powers | {cores} | ({own} if own <= cores else set())))


def by_threads(
    program: AgentProcess,
    trace: Trace,
    snapshots: Restorer,
    runner: Runner,
    memory: Memory,
    plan: TimingPlan,
    mode: Mode,
    cores: int,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> ByThreads:
    """Compare and time with every number of threads; ``trace`` has the threads apart. The restores of all numbers take
    turns, so that the machine's moods meet all alike."""
    own = len(trace.threads)
    found = [_At(count) for count in numbers(cores, own)]
    cold = plan.cold_calls if mode == "cold" else 0
    plan = replace(plan, restores=min(plan.restores, MEASURE.thread_restores), rounds=1, cold_calls=cold)
    for at in found:
        _verify(program, at, own, runner, trace)
    for turn in range(plan.restores):
        progress(turn, plan.restores)
        for at in found:
            if at.reason is None:
                _time(snapshots, at, runner, memory, replace(plan, restores=turn + 1))
    for at in found:
        if at.reason is None:
            at.shares = _shares(WithThreads(snapshots, at.threads), _variants(runner, at), memory)
    one = next((at for at in found if at.threads == 1 and at.reason is None), None)
    candidate = str(runner.candidate) if runner.candidate else None
    return ByThreads(own, candidate, mode, tuple(_count(at, one, runner, mode) for at in found))


def _verify(program: AgentProcess, at: _At, own: int, runner: Runner, trace: Trace) -> None:
    """With the program's own number of threads all has been compared before."""
    if at.threads == own:
        at.same = True
        return
    try:
        with in_copies(program, runner.subjects, None, trace, at.threads) as copies:
            at.same = copies.as_usual()
            findings = verify(copies, runner.subjects)
        at.failed = {name: finding.reason for name, finding in findings.items() if finding.reason is not None}
    except SnapshotError as error:
        at.reason = error.line()


def _variants(runner: Runner, at: _At) -> list[Timed]:
    able = [s for s in runner.subjects if s.variant not in at.failed]
    return [Timed(s.variant, s.mockup, tuple(r for r in s.forbidden if isinstance(r, Range))) for s in able]


def _time(snapshots: Restorer, at: _At, runner: Runner, memory: Memory, plan: TimingPlan) -> None:
    try:
        restored = WithThreads(snapshots, at.threads)
        at.timings = measure(restored, _variants(runner, at), memory, plan, drop=False, more=at.timings)
        at.failed.update(at.timings.failed)
    except SnapshotError as error:
        at.reason = error.line()


def _shares(snapshots: Restorer, variants: Sequence[Timed], memory: Memory) -> dict[Variant, tuple[float, ...]]:
    """By variant: of the region's wall time, what each thread spends in its body, in the quickest call of some processes.
    Empty where a process fails: nothing else depends on them."""
    quickest: dict[Variant, tuple[float, tuple[float, ...]]] = {}
    try:
        for _ in range(MEASURE.share_restores):
            with snapshots.restore() as program:
                assert isinstance(program, AgentProcess)
                for variant in (Timed(ORIGINAL, None), *variants):
                    number = program.load(variant.shared_object) if variant.shared_object is not None else 0
                    program.prepare(number, without(memory.written, variant.unwritten), memory.touched)
                    run = program.members(number, MEASURE.share_calls)
                    quickest[variant.name] = min(run, quickest.get(variant.name, run))
    except SnapshotError:
        return {}
    return {name: tuple(min(ns / wall, 1.0) for ns in own) for name, (wall, own) in quickest.items()}


def _count(at: _At, one: _At | None, runner: Runner, mode: Mode) -> ThreadCount:
    """One number of threads in the report's form."""
    if at.reason is not None:
        return ThreadCount(at.threads, at.reason, at.same)
    timings, name, identity = at.timings, runner.candidate, runner.identity
    alike = one is not None and bool(at.same and one.same)
    return ThreadCount(
        at.threads,
        None,
        at.same,
        time_of(timings, ORIGINAL, mode),
        _interval(scaling(one.timings, timings, mode)) if one is not None and alike else None,
        _interval(timings.ratio(identity, ORIGINAL, mode)) if identity is not None else None,
        time_of(timings, name, mode) if name is not None else None,
        at.failed.get(name) if name is not None else None,
        _interval(timings.ratio(ORIGINAL, name, mode)) if name is not None else None,
        _interval(timings.ratio(identity, name, mode)) if name is not None and identity is not None else None,
        at.shares.get(ORIGINAL, ()),
        at.shares.get(name, ()) if name is not None else (),
    )


def time_of(timings: Timings, name: Variant, mode: Mode) -> Time | None:
    """The undisturbed time of a variant with its interval over the restored processes."""
    times = [undisturbed(each) for each in timings.calm(name, mode) if each]
    if not times:
        return None
    ratio = undisturbed_ratio(times, [1.0] * len(times))
    return Time(ratio.median, ratio.lo, ratio.hi, ratio.restores)


def scaling(one: Timings, many: Timings, mode: Mode) -> Ratio | None:
    """The original's time in ``one`` over that in ``many``; processes that took turns make a pair."""
    both = zip(one.calm(ORIGINAL, mode), many.calm(ORIGINAL, mode), strict=False)
    pairs = [(undisturbed(a), undisturbed(b)) for a, b in both if a and b]
    return undisturbed_ratio(*zip(*pairs, strict=True)) if pairs else None


def _interval(ratio: Ratio | None) -> Interval | None:
    return None if ratio is None else Interval(ratio.median, ratio.lo, ratio.hi, ratio.restores)
