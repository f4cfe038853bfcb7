"""Timing: original, identity and candidates in rotated blocks of calls, in many restored processes.

The rules are those of the design, section 3: blocks of calls of one variant, never call by call; the order of the
variants rotates between rounds; of each variant a restored process gives one number, its undisturbed time (first decile of
the calls of all its rounds, ``docs/decisions/0005``); a ratio is that of the undisturbed times over all processes, with an
interval over the processes (``docs/decisions/0021``).
The original runs twice in each round (A and A'): the range of their ratios is the noise floor.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, Protocol

from layout_advise.errors import SnapshotError
from layout_advise.mockup.statistics import Ratio, median_of, undisturbed, undisturbed_ratio
from layout_advise.tracer.snapshot.protocol import Range, Sample, StoppedProgram

ORIGINAL = "original"
SHADOW = "original'"
IDENTITY = "identity"
SCALAR = "identity-scalar"
"""The identity without vector instructions that the compiler finds by itself: what losing them costs."""

IDENTITY_SIMD = "identity-simd"
"""The identity rerolled, and told which loops' iterations are independent: what SIMD gains with the layout unchanged."""

IDENTITY_RESTRICT = "identity-restrict"
"""The identity whose arrays are promised not to overlap: what `restrict` gains with the layout unchanged."""

FAULT_ALLOWANCE = 2
DROP_AFTER = 3
CONVERTED_IN = 3
"""In how many restored processes the conversion to and from a new layout is timed: it needs no interval."""

FEWEST_AROUND, AROUND_PART = 4, 4
"""Calls with the conversion around them: one for so many of the others, at least so many."""

PLACED = "identity-placed"
"""The identity with its hot loop where the original has it (:mod:`layout_advise.mockup.placement`)."""
IDENTITY_LANES = "identity-lanes"
"""The identity from the loops as the original's compiler unrolled them, where the other identity is rerolled."""
LAYOUT_SCALAR = "layout-scalar"
"""The best candidate without vector instructions: what its layout gains alone."""
BRIEF = (SCALAR, LAYOUT_SCALAR)
"""Slow ones that no verdict hangs on: timed in the first restores only."""
CONTROLS = (IDENTITY, PLACED, SCALAR, IDENTITY_RESTRICT, IDENTITY_SIMD, IDENTITY_LANES)
"""What is timed besides candidates; never dropped, no layout of its own."""


def converted(name: str) -> str:
    """Under which name the times of ``name`` with the conversion around every call are kept."""
    return f"{name}+conversion"


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


@dataclass(frozen=True, slots=True)
class Plan:
    """How much to measure. ``calls`` per block, of which the first ``warm`` are not used for ``steady``."""

    restores: int = 9
    rounds: int = 3
    calls: int = 7
    warm: int = 2
    cold_calls: int = 2
    clock: Literal["thread-cpu", "wall"] = "thread-cpu"
    around: bool = False
    """Whether new layouts are also timed with the conversion around every call (under the name :func:`converted` gives)."""


@dataclass(frozen=True, slots=True)
class Ratios:
    """Per variant, against the original and against the identity mock-up, one value per restore."""

    steady: Ratio
    steady_over_identity: Ratio
    cold: Ratio | None
    cold_over_identity: Ratio | None


@dataclass(slots=True)
class Timings:
    """Raw result: per restore and variant the times in ns of all valid calls."""

    steady: list[dict[str, list[float]]] = field(default_factory=list)
    cold: list[dict[str, list[float]]] = field(default_factory=list)
    rejected: int = 0
    samples: int = 0
    failed: dict[str, str] = field(default_factory=dict)
    dropped: dict[str, str] = field(default_factory=dict)
    conversions: dict[str, list[tuple[float, float] | None]] = field(default_factory=dict)
    """By variant, of each restored process: ns of converting to its layout and back; None where that was not timed."""

    @property
    def conversion(self) -> dict[str, tuple[float, float]]:
        """ns of converting to and from a variant's layout, medians over the restores; not for the identity."""
        found = {}
        for name, restores in self.conversions.items():
            runs = [one for one in restores if one is not None]
            found[name] = median_of([into for into, _ in runs]), median_of([out for _, out in runs])
        return found

    def break_even(self, name: str, mode: Literal["steady", "cold"] = "steady") -> Ratio | None:
        """After how many calls one conversion there and back is paid back: its cost over what a call gains. None when not
        measured, or where some process shows no gain."""
        times = self.steady if mode == "steady" else self.cold
        runs = [
            (sum(cost), undisturbed(a), undisturbed(b))
            for restore, cost in zip(times, self.conversions.get(name, ()), strict=False)
            if cost is not None and (a := restore.get(ORIGINAL)) and (b := restore.get(name))
        ]
        if not runs or any(before <= after for _, before, after in runs):
            return None
        costs, before, after = zip(*runs, strict=True)
        return undisturbed_ratio(costs, before, after)

    def net(self, name: str, mode: Literal["steady", "cold"] = "steady") -> Ratio | None:
        """Speedup of ``name`` over the original with the conversion around every call, as it was timed; None when it was
        not."""
        return self.ratio(ORIGINAL, converted(name), mode)

    def exchanged(self, one: str, other: str) -> Timings:
        """The same times, those of two variants under each other's name."""
        names = {one: other, other: one}
        steady, cold = ([{names.get(n, n): v for n, v in r.items()} for r in rs] for rs in (self.steady, self.cold))
        return replace(self, steady=steady, cold=cold)

    def restores(self, name: str) -> int:
        """In how many restored processes ``name`` was timed."""
        return sum(1 for restore in self.steady if restore.get(name))

    def paired(self, over: str, under: str, mode: Literal["steady", "cold"] = "steady") -> list[tuple[float, float]]:
        """Undisturbed times of ``over`` and ``under`` in each restored process that ran both."""
        values = []
        for restore in self.steady if mode == "steady" else self.cold:
            a, b = restore.get(over), restore.get(under)
            if a and b and (below := undisturbed(b)) > 0:
                values.append((undisturbed(a), below))
        return values

    def per_restore(self, over: str, under: str, mode: Literal["steady", "cold"] = "steady") -> list[float]:
        """Undisturbed time of ``over`` divided by that of ``under``, for each restored process that ran both."""
        return [a / b for a, b in self.paired(over, under, mode)]

    def ratio(self, over: str, under: str, mode: Literal["steady", "cold"] = "steady") -> Ratio | None:
        """Time(over) / time(under), undisturbed, with its interval over the restores; None where nothing was measured."""
        values = self.paired(over, under, mode)
        return undisturbed_ratio(*zip(*values, strict=True)) if values else None

    def nanoseconds(self, name: str, mode: Literal["steady", "cold"] = "steady") -> float | None:
        """The undisturbed time of one call, over all restores: they all do the same work."""
        chosen = self.steady if mode == "steady" else self.cold
        values = [undisturbed(restore[name]) for restore in chosen if restore.get(name)]
        return undisturbed(values) if values else None


def valid_times(samples: Sequence[Sample], warm: int, clock: Literal["thread-cpu", "wall"]) -> tuple[list[float], int]:
    """ns of the valid samples of a block after ``warm``, and how many were rejected for page faults.

    A sample is valid when it took at most ``FAULT_ALLOWANCE`` more minor faults than the best sample of its block.
    """
    used = list(samples[warm:]) or list(samples)
    fewest = min(sample.faults for sample in used)
    valid = [s for s in used if s.faults <= fewest + FAULT_ALLOWANCE]
    return [float(s.cpu_ns if clock == "thread-cpu" else s.wall_ns) for s in valid], len(used) - len(valid)


def measure(
    snapshots: Restorer,
    variants: Sequence[Timed],
    written: Sequence[Range],
    touched: Sequence[Range],
    plan: Plan,
    progress: Callable[[int, int], None] = lambda done, total: None,
    drop: bool = True,
) -> Timings:
    """Time ``variants`` (candidates and the identity) beside the original. A variant that crashes or hangs is noted in
    ``failed`` and left out from then on; the others go on in a new process.

    Raises SnapshotError when the original itself cannot be run.
    """
    timings = Timings()
    alive = list(variants)
    attempts = 0
    while len(timings.steady) < plan.restores:
        attempts += 1
        if attempts > 2 * plan.restores + len(variants):
            raise SnapshotError("cannot time the hotspot", "too many restored processes failed", "see the log in mockups/")
        culprit = _one_restore(snapshots, alive, written, touched, plan, len(timings.steady), timings)
        if culprit is not None:
            name, why = culprit
            if name == ORIGINAL:
                raise SnapshotError("cannot time the hotspot", why, "try --snapshot fork, or another --call")
            timings.failed[name] = why
            alive = [v for v in alive if v.name != name]
            continue
        progress(len(timings.steady), plan.restores)
        if drop and len(timings.steady) == DROP_AFTER:
            losers = clear_losers(timings, [v.name for v in alive if v.name not in CONTROLS])
            timings.dropped.update(losers)
            alive = [v for v in alive if v.name not in losers]
        if len(timings.steady) == DROP_AFTER:
            alive = [v for v in alive if v.name not in BRIEF]
    return timings


def clear_losers(timings: Timings, names: Sequence[str]) -> dict[str, str]:
    """Candidates whose ``hi`` lies below the leader's ``lo``."""
    intervals = {n: r for n in names if (r := timings.ratio(ORIGINAL, n)) is not None}
    if not intervals:
        return {}
    leader = max(intervals, key=lambda n: intervals[n].lo)
    bar = intervals[leader].lo
    return {n: f"slower than {leader} in {DROP_AFTER} restores" for n, r in intervals.items() if r.hi < bar}


def _one_restore(
    snapshots: Restorer,
    variants: Sequence[Timed],
    written: Sequence[Range],
    touched: Sequence[Range],
    plan: Plan,
    index: int,
    timings: Timings,
) -> tuple[str, str] | None:
    """Time everything in one restored process; returns the variant that broke it, and why, or None."""
    current = ORIGINAL
    steady: dict[str, list[float]] = {}
    cold: dict[str, list[float]] = {}
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
                program.prepare(numbers[variant.name], without(written, variant.unwritten), touched)
            names = list(numbers)
            for round_ in range(plan.rounds):
                for current in rotated(names, index * plan.rounds + round_):
                    samples = program.block(numbers[current], plan.calls, "steady")
                    _note(steady, current, samples, plan.warm, plan, timings)
            if plan.cold_calls:
                for current in rotated(names, index):
                    samples = program.block(numbers[current], plan.cold_calls, "cold")
                    _note(cold, current, samples, 0, plan, timings)
            new = [n for n in names if n not in (ORIGINAL, SHADOW, LAYOUT_SCALAR, *CONTROLS)]
            for current in new if index < CONVERTED_IN or plan.around else ():
                runs = program.convert(numbers[current])
                costs[current] = undisturbed([into for into, _ in runs]), undisturbed([out for _, out in runs])
            for current in new if plan.around else ():
                calls = max(FEWEST_AROUND, plan.calls // AROUND_PART)
                samples = program.block(numbers[current], calls, "steady", converted=True)
                _note(steady, converted(current), samples, 1, plan, timings)
                if plan.cold_calls:
                    samples = program.block(numbers[current], plan.cold_calls, "cold", converted=True)
                    _note(cold, converted(current), samples, 0, plan, timings)
        except SnapshotError as error:
            return (ORIGINAL if current == SHADOW else current), str(error)
    timings.steady.append(steady)
    timings.cold.append(cold)
    for name, cost in costs.items():
        known = timings.conversions.setdefault(name, [])
        known += [None] * (len(timings.steady) - 1 - len(known))
        known.append(cost)
    return None


def _note(
    store: dict[str, list[float]], name: str, samples: Sequence[Sample], warm: int, plan: Plan, timings: Timings
) -> None:
    times, rejected = valid_times(samples, warm, plan.clock)
    timings.rejected += rejected
    timings.samples += len(samples)
    store.setdefault(name, []).extend(times)


def rotated(names: Sequence[str], by: int) -> list[str]:
    """``names`` rotated by ``by`` and, in every second full turn, reversed, so that neighbours change too."""
    if not names:
        return []
    shift = by % len(names)
    turned = [*names[shift:], *names[:shift]]
    return turned if (by // len(names)) % 2 == 0 else turned[::-1]


def summarise(timings: Timings, name: str) -> Ratios | None:
    """All ratios of one variant; None when it was never timed."""
    steady = timings.ratio(ORIGINAL, name)
    identity = identity_of(timings, name)
    over = timings.ratio(identity, name)
    if steady is None or over is None:
        return None
    return Ratios(steady, over, timings.ratio(ORIGINAL, name, "cold"), timings.ratio(identity, name, "cold"))


def identity_of(timings: Timings, name: str) -> str:
    """The identity mock-up that the variant ``name`` is compared with: that of its own kind where it was timed.

    Candidates are made of another form of the loops (rerolled, written out) than the original's. Where the unchanged layout
    gains by that form alone, the gain is not the layout's: the faster form is what candidates are held against.
    """
    own = {"simd": IDENTITY_SIMD, "restrict": IDENTITY_RESTRICT}.get(name.rpartition("-")[2])
    if own is not None and timings.restores(own):
        return own
    other = timings.ratio(IDENTITY_LANES, IDENTITY)
    return IDENTITY_LANES if other is not None and other.hi < 1.0 else IDENTITY


def identity_ratio(timings: Timings, mode: Literal["steady", "cold"] = "steady") -> Ratio | None:
    """Time of the unchanged mock-up over the original's, with aligned loops or placed as in the original: the nearer one."""
    found = [r for name in (IDENTITY, PLACED) if (r := timings.ratio(name, ORIGINAL, mode)) is not None]
    return min(found, key=lambda r: abs(math.log(r.median)), default=None)


def noise_floor(timings: Timings, mode: Literal["steady", "cold"] = "steady") -> tuple[float, float]:
    """Range over the restores of original over original, always around 1."""
    values = timings.per_restore(ORIGINAL, SHADOW, mode)
    if not values:
        return (1.0, 1.0)
    both = [*values, *(1 / v for v in values)]
    return (min(both), max(both))


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
