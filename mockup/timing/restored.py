"""Timing in one restored process: blocks of calls of each variant in turn, and what each call took."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean as mean

from layout_advise.errors import SnapshotError
from layout_advise.mockup.timing.canary import Canary, fastest
from layout_advise.mockup.timing.plan import Memory, Restorer, Timed, TimingPlan
from layout_advise.mockup.timing.policy import TIMING
from layout_advise.mockup.timing.process_times import ProcessTimes
from layout_advise.mockup.timing.statistics import undisturbed
from layout_advise.mockup.timing.timings import Timings
from layout_advise.mockup.timing.variants import CONTROLS, ORIGINAL, PLACEMENTS, SHADOW, Variant
from layout_advise.tracer.process.stopped_program import MODES, Calm, Mode, Range, Sample, StoppedProgram


def valid_samples(samples: Sequence[Sample], warm: int) -> tuple[list[Sample], int]:
    """The valid samples of a block after ``warm``, and how many were rejected for page faults.

    A sample is valid when it took at most ``TIMING.fault_allowance`` more minor faults than the best sample of its block.
    """
    used = list(samples[warm:]) or list(samples)
    fewest = min(sample.faults for sample in used)
    valid = [s for s in used if s.faults <= fewest + TIMING.fault_allowance]
    return valid, len(used) - len(valid)


class BrokenVariant(Exception):
    """A variant that crashed or hung, and why."""

    def __init__(self, name: Variant, why: str) -> None:
        super().__init__(why)
        self.name, self.why = name, why


class Restore:
    """One restored process, in which everything is timed in turn."""

    def __init__(self, plan: TimingPlan, timings: Timings, variants: Sequence[Timed], memory: Memory) -> None:
        self._plan, self._variants, self._memory = plan, variants, memory
        self._index = len(timings.steady)
        self._notes = _Notes(plan, fastest((Canary(plan.canary), timings.best_canary)), patience(plan, timings))
        self._numbers: dict[Variant, int] = {ORIGINAL: 0, SHADOW: 0}
        self._current = ORIGINAL
        self._before = timings.steady[-1] if timings.steady else {}

    def run(self, snapshots: Restorer) -> ProcessTimes:
        """What was timed. Raises BrokenVariant."""
        with snapshots.restore() as program:
            try:
                self._load(program)
                self._time(program)
                return self._notes.process(self._convert(program))
            except SnapshotError as error:
                raise BrokenVariant(ORIGINAL if self._current == SHADOW else self._current, str(error)) from error

    def _load(self, program: StoppedProgram) -> None:
        written, touched = self._memory.written, self._memory.touched
        program.prepare(0, written, touched)
        self._notes.put_back(ORIGINAL, program.put_back(0))
        for variant in self._variants:
            self._current = variant.name
            if variant.shared_object is None:
                continue
            number = self._numbers[variant.name] = program.load(variant.shared_object)
            # verified to write what the original writes, where it does
            old = variant.name in CONTROLS and not variant.name.is_reindexed
            program.prepare(number, without(written, variant.unwritten), touched, like_original=old)
            self._notes.put_back(variant.name, program.put_back(number))

    def _time(self, program: StoppedProgram) -> None:
        plan, names = self._plan, list(self._numbers)
        for round_ in range(plan.rounds):
            turn = self._index * plan.rounds + round_
            for name in rotated([n for n in names if in_turn(n, turn)], turn):
                if calls := self._calls(name):
                    self._block(program, name, calls, "steady", plan.warm)
        here = [n for n in names if in_turn(n, self._index)]
        if self._cold_calls:
            self._blocks(program, here, self._index, self._cold_calls, "cold", 0)
        if plan.apart_calls:
            self._blocks(program, here, self._index, plan.apart_calls, "apart", 1)
        if plan.fresh_calls:
            self._current = ORIGINAL
            program.block(0, TIMING.forgotten_calls, "fresh")
        for round_ in range(TIMING.fresh_rounds if plan.fresh_calls else 0):
            learnt = [n for n in names if self._notes.steady(n)]
            wanted = learnt if round_ == 0 else [n for n in learnt if not self._is_slow(n)]
            self._blocks(program, wanted, self._index * TIMING.fresh_rounds + round_, plan.fresh_calls, "fresh", 1)

    def _blocks(self, program: StoppedProgram, names: list[Variant], turn: int, calls: int, mode: Mode, warm: int) -> None:
        for name in rotated(names, turn):
            self._block(program, name, warm + 1 if self._is_slow(name) else calls, mode, warm)

    def _is_slow(self, name: Variant) -> bool:
        """Tells whether a call of the variant takes :attr:`TimingPolicy.slow_part` times as long as one of the original."""
        own, original = self._notes.steady(name) or self._before.get(name, ()), self._notes.steady(ORIGINAL)
        return bool(own and original) and mean(own) > TIMING.slow_part * mean(original)

    def _calls(self, name: Variant) -> int:
        """How many calls the next block of a variant has: as the plan says, and fewer, or none, where the variant has had
        :attr:`TimingPolicy.slow_part` times as long in this process as the original has in all. What a mock-up takes that
        was never called is not known: a few calls tell, where there are further rounds."""
        plan, few = self._plan, min(self._plan.calls, self._plan.warm + TIMING.fewest_told)
        if name in (ORIGINAL, SHADOW):
            return plan.calls
        seen = {n: self._notes.steady(n) or self._before.get(n, ()) for n in (ORIGINAL, name, name.own)}
        original, own = (mean(seen[n]) if seen[n] else 0.0 for n in (ORIGINAL, name if seen[name] else name.own))
        if not own or not original:
            return few if plan.rounds > 1 and not own else plan.calls
        spent = sum(self._notes.steady(name))
        left = (TIMING.slow_part * plan.rounds * plan.calls * original - spent) / own
        if left >= plan.calls:
            return plan.calls
        return max(int(left), few) if left >= 1 or not spent else 0

    def _block(
        self, program: StoppedProgram, name: Variant, calls: int, mode: Mode, warm: int, *, around: bool = False
    ) -> None:
        self._current = name
        self._notes.block(program, name, self._numbers[name], calls, mode, warm, around=around)

    def _convert(self, program: StoppedProgram) -> dict[Variant, tuple[float, float]]:
        """The ns of converting to each new layout and back; calls with the conversion around them where the plan says so."""
        plan, costs = self._plan, {}
        new = [n for n in self._numbers if n.is_contender]
        for name in new if self._index < TIMING.converted_in or plan.around else ():
            self._current = name
            runs = program.convert(self._numbers[name])
            costs[name] = undisturbed([into for into, _ in runs]), undisturbed([out for _, out in runs])
        for name in new if plan.around else ():
            self._block(program, name, max(TIMING.fewest_around, plan.calls // TIMING.around_part), "steady", 1, around=True)
            if self._cold_calls:
                self._block(program, name, self._cold_calls, "cold", 0, around=True)
        return costs

    @property
    def _cold_calls(self) -> int:
        limit = self._plan.cold_restores
        return self._plan.cold_calls if limit is None or self._index < limit else 0


def patience(plan: TimingPlan, timings: Timings) -> int:
    """The ns that the next process may wait: all that is left, but half of the plan's time at most. One that goes on while
    it is disturbed tells nothing beside others that were not, and takes as long (``docs/decisions/0152``)."""
    left = max(0, plan.patience_ns - timings.waited_ns)
    return min(left, int(plan.seconds * 1e9 / 2)) if plan.seconds else left


class _Notes:
    """What was timed in one restored process."""

    def __init__(self, plan: TimingPlan, canary: Canary, patience_ns: int) -> None:
        self._wall = plan.clock == "wall"
        self._given = patience_ns if canary.core else 0
        limit = canary.limit()
        self._calm = Calm(limit.core, self._given, memory=limit.memory, look=plan.memory)
        self._enough, self._settle = plan.enough, (plan.most_calls, plan.clock) if plan.most_calls else None
        self._times: dict[Mode, dict[Variant, list[float]]] = {mode: {} for mode in MODES}
        self._canaries: dict[Mode, dict[Variant, list[Canary]]] = {mode: {} for mode in MODES}
        self._put: dict[Variant, float] = {}
        self._calls = plan.calls
        self._rejected, self._samples = 0, 0

    def put_back(self, name: Variant, ns: float) -> None:
        """Note how long it takes to put back what the program writes between the calls of a batch: it is in the calls'
        times, and taken from them."""
        if ns:
            self._put[name] = ns

    def steady(self, name: Variant) -> Sequence[float]:
        """The times of the calls of a variant with warm caches so far."""
        return self._times["steady"].get(name, ())

    def block(
        self, program: StoppedProgram, name: Variant, number: int, calls: int, mode: Mode, warm: int, *, around: bool = False
    ) -> None:
        """Time a block of calls and note the valid ones; of one that went on until it was settled the later half."""
        self._calm = replace(self._calm, enough=self._enough + warm if self._enough and self._calm.ticks else 0)
        settle = self._settle if mode == "steady" and (around or calls >= self._calls) else None
        samples, self._calm = program.block(number, calls, mode, converted=around, calm=self._calm, settle=settle)
        valid, rejected = valid_samples(samples, len(samples) // 2 if len(samples) > calls else warm)
        self._rejected += rejected
        self._samples += len(samples)
        key, put = name.with_conversion if around else name, self._put.get(ORIGINAL if name == SHADOW else name, 0.0)
        self._times[mode].setdefault(key, []).extend(max(self._time(s) - put, 0.0) for s in valid)
        self._canaries[mode].setdefault(key, []).extend(Canary(s.canary, s.memory) for s in valid)

    def _time(self, sample: Sample) -> float:
        return float(sample.wall_ns if self._wall else sample.cpu_ns)

    def process(self, conversions: dict[Variant, tuple[float, float]]) -> ProcessTimes:
        """What was timed, with what converting took."""
        waited = self._given - self._calm.patience_ns
        return ProcessTimes(self._times, self._canaries, conversions, waited, self._rejected, self._samples, self._put)


def rotated(names: Sequence[Variant], by: int) -> list[Variant]:
    """``names`` rotated by ``by`` and, in every second full turn, reversed, so that neighbours change too."""
    if not names:
        return []
    shift = by % len(names)
    turned = [*names[shift:], *names[:shift]]
    return turned if (by // len(names)) % 2 == 0 else turned[::-1]


def in_turn(name: Variant, turn: int) -> bool:
    """Whether a variant is timed in that round of all processes, or with flushed caches in that process: each of the builds
    with their code at other places in every third, as there are as many."""
    return not name.placement or name.placement == turn % PLACEMENTS + 1


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
