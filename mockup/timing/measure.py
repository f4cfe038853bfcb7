"""Timing: original, identity and candidates in rotated blocks of calls, in many restored processes.

The rules are those of the design, section 3: blocks of calls of one variant, never call by call; the order of the
variants rotates between rounds. The original runs twice in each round (A and A'): the range of their ratios is the noise
floor. Before each call a process waits, within its patience, for the processor not to be slowed (``docs/decisions/0022``).
What follows from the times: :mod:`layout_advise.mockup.timing.timings`, :mod:`layout_advise.mockup.timing.ratios`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from layout_advise.errors import SnapshotError
from layout_advise.mockup.timing.branch_training import as_in_program
from layout_advise.mockup.timing.canary import Canary, fastest
from layout_advise.mockup.timing.names import (
    CONTROLS,
    IDENTITY,
    LAYOUT_SCALAR,
    ORIGINAL,
    SCALAR,
    SHADOW,
    converted,
    elsewhere,
    is_elsewhere,
)
from layout_advise.mockup.timing.ratios import gain
from layout_advise.mockup.timing.statistics import undisturbed
from layout_advise.mockup.timing.timings import Timings
from layout_advise.tracer.process.stopped_program import MODES, Calm, Clock, Mode, Range, Sample, StoppedProgram

FAULT_ALLOWANCE = 2
DROP_AFTER = 3
CONVERTED_IN = 1
"""In how many restored processes the conversion to and from a new layout is timed: only the winner's needs an interval."""

FRESH_ROUNDS = 2
"""Others disturb for some 10 ms, which is as long as a block of such calls takes."""
FORGOTTEN = 30
"""After so many calls, of any variant, no more becomes unknown: what was learnt in hundreds of calls gives way slowly."""

FEWEST_AROUND, AROUND_PART = 4, 4
"""Calls with the conversion around them: one for so many of the others, at least so many."""

BRIEF = (SCALAR, LAYOUT_SCALAR)
"""Slow ones that no verdict hangs on, as a rule: timed in the first restores only."""


class Restorer(Protocol):
    """Where restored processes come from (CRIU or fork)."""

    def restore(self) -> StoppedProgram:
        """A fresh stopped program."""
        ...


@dataclass(frozen=True, slots=True)
class Timed:
    """A variant to time: its name and its shared object (None for the original)."""

    name: str
    shared_object: Path | None
    unwritten: tuple[Range, ...] = ()
    """Written by the original but not by this variant (it writes to its own buffers instead): need not be saved."""
    blocked: bool = False
    """Whether it has loops over the elements of a block, which compilers make vector instructions of by themselves."""


@dataclass(frozen=True, slots=True)
class TimingPlan:
    """How much to measure. ``calls`` per block, of which the first ``warm`` are not used for ``steady``."""

    restores: int = 9
    rounds: int = 3
    calls: int = 7
    warm: int = 2
    cold_calls: int = 2
    fresh_calls: int = 0
    """With branches that are not known, of which the first of each block does not count; 0: none."""
    cold_restores: int | None = None
    """In how many processes, the first ones, calls with flushed caches are timed; None: in all."""
    seconds: float | None = None
    """After so long no further process is begun once there were ``fewest``."""
    fewest: int = 5
    clock: Clock = "thread-cpu"
    canary: int = 0
    """Ticks of the fastest canary known from the running program; 0: none."""
    patience_ns: int = 18_000_000_000
    """How long all restored processes together may wait for the processor not to be slowed."""
    enough: int = 0
    """A block ends after so many calls, besides ``warm``, at which it was not; 0: only after all its calls."""
    most_calls: int = 0
    """A block whose calls still become quicker goes on, to so many calls at most (0: it does not): data needs up to fifty
    calls to get into a last cache that many share (``docs/decisions/0033``)."""
    hopeless: float | None = None
    """What is slower than the leader by more than this factor is dropped even where few of its calls were undisturbed."""
    finalists: int | None = None
    """After :data:`DROP_AFTER` processes so many candidates go on, the fastest; None: all that are not clear losers."""
    memory: bool = False
    """Whether processes also wait for the memory not to be slowed, before each block: for data that no cache of the core
    holds."""
    typical: bool = False
    """As in :class:`~layout_advise.mockup.timing.timings.Timings`."""
    unknown: float = 0.0
    """What part of the branches is not known in the running program: which candidates are dropped is judged so."""
    around: bool = False
    """Whether new layouts are also timed with the conversion around every call (under the name :func:`converted` gives)."""


def valid_samples(samples: Sequence[Sample], warm: int) -> tuple[list[Sample], int]:
    """The valid samples of a block after ``warm``, and how many were rejected for page faults.

    A sample is valid when it took at most ``FAULT_ALLOWANCE`` more minor faults than the best sample of its block.
    """
    used = list(samples[warm:]) or list(samples)
    fewest = min(sample.faults for sample in used)
    valid = [s for s in used if s.faults <= fewest + FAULT_ALLOWANCE]
    return valid, len(used) - len(valid)


def measure(
    snapshots: Restorer,
    variants: Sequence[Timed],
    written: Sequence[Range],
    touched: Sequence[Range],
    plan: TimingPlan,
    progress: Callable[[int, int], None] = lambda done, total: None,
    drop: bool = True,
    more: Timings | None = None,
) -> Timings:
    """Time ``variants`` (candidates and the identity) beside the original. A variant that crashes or hangs is noted in
    ``failed`` and left out from then on; the others go on in a new process. With ``more`` these timings are added to, until
    they have ``plan.restores`` processes.

    Raises SnapshotError when the original itself cannot be run.
    """
    timings = more if more is not None else Timings(typical=plan.typical)
    timings.blocked |= {v.name for v in variants if v.blocked}
    alive = [v for v in variants if v.name not in timings.failed]
    attempts, begun = 0, time.monotonic()
    while len(timings.steady) < plan.restores:
        if plan.seconds and len(timings.steady) >= plan.fewest and time.monotonic() - begun > plan.seconds:
            break
        attempts += 1
        if attempts > 2 * plan.restores + len(variants):
            raise SnapshotError("cannot time the hotspot", "too many restored processes failed", "see the log in mockups/")
        culprit = _one_restore(snapshots, alive, written, touched, plan, len(timings.steady), timings)
        if culprit is not None:
            name, why = culprit
            if name == ORIGINAL:
                raise SnapshotError("cannot time the hotspot", why, "try --snapshot fork, or another --call")
            timings.failed[name] = why
            alive = [v for v in alive if v.name not in (name, *elsewhere(name))]
            continue
        done = time.monotonic()
        progress(len(timings.steady), plan.restores)
        begun += time.monotonic() - done  # a benchmark runs other programs here
        if drop and len(timings.steady) >= DROP_AFTER:
            # what was never seen undisturbed gets as many processes again
            names = [v.name for v in alive if v.name not in CONTROLS and not is_elsewhere(v.name)]
            now = as_in_program(timings, plan.unknown)
            losers = clear_losers(now, [n for n in names if timings.is_settled(n) or len(timings.steady) >= 2 * DROP_AFTER])
            if plan.hopeless is not None:
                losers |= clear_losers(now, names, plan.hopeless)
            if plan.finalists is not None and len(timings.steady) == DROP_AFTER:
                losers |= beyond(now, [n for n in names if n not in losers], plan.finalists)
            timings.dropped.update(losers)
            # what loses at all places loses; of the rest it has to be known how much
            gone = {n for name in names if (r := gain(now, name)) and r.hi < 1 for n in elsewhere(name)}
            gone |= {place for name in losers for place in (name, *elsewhere(name))}
            alive = [v for v in alive if v.name not in gone]
        if len(timings.steady) == DROP_AFTER:
            alive = [v for v in alive if v.name not in BRIEF or is_better_scalar(timings, v.name)]
    return as_in_program(timings, plan.unknown)


def clear_losers(timings: Timings, names: Sequence[str], factor: float = 1.0) -> dict[str, str]:
    """Candidates whose ``hi`` lies below the leader's ``lo``, by more than ``factor``."""
    intervals = {n: r for n in names if (r := gain(timings, n)) is not None}
    if not intervals:
        return {}
    leader = max(intervals, key=lambda n: intervals[n].lo)
    bar = intervals[leader].lo
    return {
        n: f"slower than {leader} in {timings.restores(n)} restores" for n, r in intervals.items() if factor * r.hi < bar
    }


def is_better_scalar(timings: Timings, name: str) -> bool:
    """Whether the unchanged layout seems to be faster without vector instructions: a verdict hangs on it then."""
    ratio = timings.ratio(SCALAR, IDENTITY)
    return name == SCALAR and ratio is not None and ratio.median < 1.0


def beyond(timings: Timings, names: Sequence[str], places: int) -> dict[str, str]:
    """The candidates that are not among the ``places`` fastest: first the fastest variant of each layout, as layouts are
    what is compared, then their others."""
    speeds = {n: r.median for n in names if (r := gain(timings, n)) is not None}
    ranked: list[tuple[int, str]] = []
    seen: dict[str, int] = {}
    for name in sorted(speeds, key=lambda n: -speeds[n]):
        layout = name.partition("-")[0]
        ranked.append((seen.get(layout, 0), name))
        seen[layout] = seen.get(layout, 0) + 1
    slower = [name for _, name in sorted(ranked, key=lambda one: one[0])[places:]]
    return {n: f"not among the {places} fastest in {timings.restores(n)} restores" for n in slower}


def _one_restore(
    snapshots: Restorer,
    variants: Sequence[Timed],
    written: Sequence[Range],
    touched: Sequence[Range],
    plan: TimingPlan,
    index: int,
    timings: Timings,
) -> tuple[str, str] | None:
    """Time everything in one restored process; returns the variant that broke it, and why, or None."""
    current = ORIGINAL
    notes = _Notes(plan, fastest((Canary(plan.canary), timings.best_canary)), patience(plan, timings))
    costs: dict[str, tuple[float, float]] = {}
    with snapshots.restore() as program:
        try:
            numbers: dict[str, int] = {ORIGINAL: 0, SHADOW: 0}
            program.prepare(0, written, touched)
            for variant in variants:
                current = variant.name
                if variant.shared_object is None:
                    continue
                numbers[variant.name] = program.load(variant.shared_object)
                old = variant.name in CONTROLS  # verified to write what the original writes
                program.prepare(numbers[variant.name], without(written, variant.unwritten), touched, like_original=old)
            names = list(numbers)
            for round_ in range(plan.rounds):
                turn = index * plan.rounds + round_
                for current in rotated([n for n in names if in_turn(n, turn)], turn):
                    notes.block(program, current, numbers[current], plan.calls, "steady", plan.warm)
            cold = plan.cold_calls if plan.cold_restores is None or index < plan.cold_restores else 0
            if cold:
                for current in rotated(names, index):
                    notes.block(program, current, numbers[current], cold, "cold", 0)
            if plan.fresh_calls:
                current = ORIGINAL
                program.block(0, FORGOTTEN, "fresh")
            for round_ in range(FRESH_ROUNDS if plan.fresh_calls else 0):
                for current in rotated(names, index * FRESH_ROUNDS + round_):
                    notes.block(program, current, numbers[current], plan.fresh_calls, "fresh", 1)
            new = [n for n in names if n not in (ORIGINAL, SHADOW, LAYOUT_SCALAR, *CONTROLS) and not is_elsewhere(n)]
            for current in new if index < CONVERTED_IN or plan.around else ():
                runs = program.convert(numbers[current])
                costs[current] = undisturbed([into for into, _ in runs]), undisturbed([out for _, out in runs])
            for current in new if plan.around else ():
                calls = max(FEWEST_AROUND, plan.calls // AROUND_PART)
                notes.block(program, current, numbers[current], calls, "steady", 1, around=True)
                if cold:
                    notes.block(program, current, numbers[current], cold, "cold", 0, around=True)
        except SnapshotError as error:
            return (ORIGINAL if current == SHADOW else current), str(error)
    notes.into(timings)
    for name, cost in costs.items():
        known = timings.conversions.setdefault(name, [])
        known += [None] * (len(timings.steady) - 1 - len(known))
        known.append(cost)
    return None


def patience(plan: TimingPlan, timings: Timings) -> int:
    """How long (ns) the next process may wait: more than its part of what is left: there are most variants at first."""
    left = max(0, plan.patience_ns - timings.waited_ns)
    return 2 * left // (plan.restores - len(timings.steady) + 1)


class _Notes:
    """What was timed in one restored process."""

    def __init__(self, plan: TimingPlan, canary: Canary, patience_ns: int) -> None:
        self._wall = plan.clock == "wall"
        self._given = patience_ns if canary.core else 0
        limit = canary.limit()
        self._calm = Calm(limit.core, self._given, memory=limit.memory, look=plan.memory)
        self._enough, self._settle = plan.enough, (plan.most_calls, plan.clock) if plan.most_calls else None
        self._times: dict[Mode, dict[str, list[float]]] = {mode: {} for mode in MODES}
        self._canaries: dict[Mode, dict[str, list[Canary]]] = {mode: {} for mode in MODES}
        self._rejected, self._samples = 0, 0

    def block(
        self, program: StoppedProgram, name: str, number: int, calls: int, mode: Mode, warm: int, *, around: bool = False
    ) -> None:
        """Time a block of calls and note the valid ones; of one that went on until it was settled the later half."""
        self._calm = replace(self._calm, enough=self._enough + warm if self._enough and self._calm.ticks else 0)
        samples, self._calm = program.block(
            number, calls, mode, converted=around, calm=self._calm, settle=self._settle if mode == "steady" else None
        )
        valid, rejected = valid_samples(samples, len(samples) // 2 if len(samples) > calls else warm)
        self._rejected += rejected
        self._samples += len(samples)
        key = converted(name) if around else name
        self._times[mode].setdefault(key, []).extend(self._time(s) for s in valid)
        self._canaries[mode].setdefault(key, []).extend(Canary(s.canary, s.memory) for s in valid)

    def _time(self, sample: Sample) -> float:
        return float(sample.wall_ns if self._wall else sample.cpu_ns)

    def into(self, timings: Timings) -> None:
        """Add it as one more restored process."""
        for mode in MODES:
            timings.of(mode).append(self._times[mode])
        for mode, canaries in self._canaries.items():
            timings.canaries[mode].append(canaries)
        timings.waited_ns += self._given - self._calm.patience_ns
        timings.rejected += self._rejected
        timings.samples += self._samples


def rotated(names: Sequence[str], by: int) -> list[str]:
    """``names`` rotated by ``by`` and, in every second full turn, reversed, so that neighbours change too."""
    if not names:
        return []
    shift = by % len(names)
    turned = [*names[shift:], *names[:shift]]
    return turned if (by // len(names)) % 2 == 0 else turned[::-1]


def in_turn(name: str, turn: int) -> bool:
    """Whether a variant is timed in that round of all processes: each of the builds with their code at other places in every
    third, as there are as many."""
    return not is_elsewhere(name) or elsewhere(name.partition("@")[0])[turn % 3] == name


def without(ranges: Sequence[Range], holes: Sequence[Range]) -> tuple[Range, ...]:
    """``ranges`` less what lies in ``holes``."""
    left = list(ranges)
    for hole in holes:
        left = [
            Range(start, end)
            for r in left
            for start, end in ((r.start, min(r.end, hole.start)), (max(r.start, hole.end), r.end))
            if start < end
        ]
    return tuple(left)
