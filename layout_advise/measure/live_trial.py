"""A candidate tried in the running program, which is started some more times for it (``docs/decisions/0069``)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

import numpy as np

from layout_advise.errors import LayoutAdviseError, OvertimeError, ProgramError
from layout_advise.layoutalgebra.derive.structure import Candidate, Structure
from layout_advise.measure.effort import TrialTime, trial_time, trials_end
from layout_advise.measure.live_outcome import LiveTrial, around, course, unimproved, unlike_by_itself, with_unimproved
from layout_advise.measure.live_ratio import LiveTimes, live_times
from layout_advise.measure.policy import MEASURE
from layout_advise.mockup.ir.effects import Gpr
from layout_advise.mockup.remap.conversion_view import View
from layout_advise.mockup.timing.statistics import Ratio
from layout_advise.mockup.timing.variants import Variant
from layout_advise.observe.case import Case
from layout_advise.propose.source import Source
from layout_advise.tracer.live.orders import MOST_LEFT_OUT, MOST_RANGES, LiveCalls, LiveTask
from layout_advise.tracer.live.outcome import FAULTED, STOPPED, LiveRun
from layout_advise.tracer.live.output import OutputComparison, compare_output
from layout_advise.tracer.live.run import run_live
from layout_advise.tracer.process.stopped_program import Range
from layout_advise.tracer.sampling.turns import own_time
from layout_advise.tracer.trace.trace import Allocation

GENERAL = 16
MOST_DEATHS = 4
"""So many calls at which the mock-up ends the program although a survey did not tell are left to the original; with more
there is no trial."""
Found = TypeVar("Found")
PAIRS = 2 * MEASURE.live_fewest_pairs
"""The fewest runs that times are of, after those that prepare a trial ..."""
OF_ALL = 0.5
"""... each of which takes at least this part of one with all calls as the mock-up: half of its calls are."""


@dataclass(frozen=True, slots=True)
class LiveSubject:
    """A ``mockup`` to be tried, of a ``candidate`` (None: of the unchanged layout), which copies as ``view`` says.
    ``general`` builds it so that it takes any registers as they come, and ``ending`` so that it ends its process where an
    access goes to another place than the layout has for it (with True: one that takes any registers, too); None where that
    cannot be built."""

    mockup: Path
    candidate: Candidate | None
    view: View
    general: Callable[[], Path | None]
    ending: Callable[[bool], Path | None] = lambda general: None


class NoTrialError(Exception):
    """There is no trial, for this reason."""


class TooSlowError(NoTrialError):
    """There is none, as the program takes too long in it."""


def in_time(
    run: Callable[[float], Found],
    time: TrialTime,
    needed: float,
    ordinary: Sequence[LiveRun],
    timeout: float,
    pace: float = 0.0,
) -> Found:
    """Returns what ``run`` gives in the seconds that it is handed: its part of what is left, where as long as so many such
    runs is still ``needed``, it included, and no more than ``timeout``. ``pace``: what each of them takes at least. Raises
    :class:`TooSlowError` where there is no time for all of these, also during it."""
    now, known = own_time(), min((one.seconds for one in ordinary), default=None)
    seconds = min(time.of_run(now, needed, known), timeout)
    if seconds <= 0:
        raise TooSlowError("the time for trials is over")
    slow = "in a trial the program takes {}: too slow for one"
    if needed and pace > seconds:
        raise TooSlowError(slow.format(time.times_alone(pace)))
    try:
        return run(seconds)
    except OvertimeError as error:
        raise TooSlowError(slow.format(f"more than {time.times_alone(seconds)}")) from error


@dataclass(frozen=True, slots=True)
class PreparedTrial:
    """A candidate that came to the program's end as the mock-up of all calls that ``task`` leaves to it, in ``run``, and
    after which the program had done what it does ordinarily. ``held``: with each access held against the layout before."""

    task: LiveTask
    run: LiveRun
    held: bool


@dataclass(slots=True)
class LiveBench:
    """All that trials of the candidates of a region share: the case, the ``source`` of its mock-ups, heap blocks as they
    were at the stop, the ``seconds`` that the region has for measuring and trials, since when, ordinary runs, when trials
    began and are over, and the mock-ups tried."""

    case: Case
    source: Source
    allocations: Sequence[Allocation]
    seconds: float = MEASURE.budget_s
    begun: float = -math.inf
    ordinary: list[LiveRun] = field(default_factory=list)
    times: tuple[float, float] | None = None
    tried: set[Path] = field(default_factory=set)

    def begin(self) -> None:
        """The region's seconds begin now."""
        self.begun = own_time()

    @property
    def took(self) -> float:
        """The seconds since then."""
        return own_time() - self.begun

    def refusal(self) -> str:
        """The reason why no candidate can be tried; empty where nothing speaks against it."""
        ns = self.case.per_call(self.case.chosen.in_situ_ns)
        if self.case.profiled.threaded:
            return "several threads run the region"
        if self.case.probe.threads > 1:
            return "the program calls the region from several threads"
        if self.case.probe.recursive:
            return "the region calls itself"
        if self.case.profiled.entry.chunk:
            return "a chunk of a loop's iterations is studied, between which and the rest nothing tells data apart"
        if self.case.settings.temporary:
            return "layouts that exist during a call only are timed with their conversion instead"
        if ns is not None and ns < MEASURE.live_least_ns:
            return f"a call takes {ns:.0f} ns, too short to be timed by itself"
        if self.case.probe.calls - self.case.chosen.call < MEASURE.live_fewest_calls:
            return "too few calls follow the one that was studied"
        return ""

    def time(self, mockup: Path) -> TrialTime:
        """How long the trial of a mock-up may take that begins now. Raises where it cannot be made in that time."""
        now, alone = own_time(), self.case.profiled.run.seconds
        begun, over = self.times = self.times or (now, trials_end(now, self.begun + self.seconds, self.seconds))
        found = trial_time(begun, over, alone, now, again=mockup in self.tried)
        runs = 4 - len(self.ordinary) + PAIRS
        if runs * alone > found.until - now:
            if self.tried and mockup not in self.tried:
                raise NoTrialError("the time for trials went into others")
            left = f"{found.until - now:.0f} s"
            raise NoTrialError(f"the program takes {alone:.0f} s, and would have to run {runs} times in {left} (--budget)")
        self.tried.add(mockup)
        return found

    def trial(self, subject: LiveSubject) -> LiveTrial:
        """Tries a candidate; never raises for what can go wrong with it. Where the time is over, only what was tried before
        is tried again."""
        try:
            if why := self.refusal():
                raise NoTrialError(why)
            return _Trial(self, subject, self.task(subject), self.time(subject.mockup)).carried_out()
        except NoTrialError as why:
            return LiveTrial(None, str(why))
        except LayoutAdviseError as error:
            return LiveTrial(None, error.line())
        except OSError as error:
            return LiveTrial(None, str(error))

    def prepared(self, subject: LiveSubject, until: float, after: int) -> PreparedTrial:
        """A candidate without its times, in time for so many runs ``after`` it. Raises LayoutAdviseError or
        :class:`NoTrialError` where it cannot be tried."""
        if why := self.refusal():
            raise NoTrialError(why)
        time = TrialTime(until, until, self.case.profiled.run.seconds)
        trial = _Trial(self, subject, self.task(subject), time, after)
        run, _ = trial.prepared()
        return PreparedTrial(trial.task, run, trial.held)

    def compared(self, run: LiveRun) -> OutputComparison:
        """Raises where the program did not do what it does ordinarily."""
        one, other = self.ordinary
        if run.returncode != one.returncode:
            raise NoTrialError(f"the program ended with {run.end} instead of {one.end}")
        found = compare_output(one.stdout, other.stdout, run.stdout)
        if found.own is None:
            raise NoTrialError("what the program prints differs from run to run")
        if not found.same or not compare_output(one.stderr, other.stderr, run.stderr).same:
            raise NoTrialError("the program printed something else")
        return found

    def is_quick(self) -> bool:
        """Tells whether only the time stamp counter is read around calls."""
        ns = self.case.per_call(self.case.chosen.in_situ_ns)
        return ns is None or ns < MEASURE.live_quick_ns

    def task(self, subject: LiveSubject) -> LiveTask:
        """The orders for a candidate. Raises where its structures cannot be watched."""
        relayouts = subject.candidate.relayouts if subject.candidate is not None else ()
        structures = [r.structure for r in relayouts]
        if any(not s.placed for s in structures):
            raise NoTrialError("its objects lie scattered over the heap")
        if any(r.chosen is not None for r in relayouts):
            raise NoTrialError("it stores the elements of one call only")
        if len(structures) > MOST_RANGES:
            raise NoTrialError("it re-lays too many structures")
        blocks = [self._block(s) for s in structures if s.kind == "heap"]
        ranges = tuple(Range(s.base, _end(s)) for s in structures)
        equal = {number: (value, value) for number, value in self._read().items() if number not in self.source.varying}
        return LiveTask(
            subject.mockup,
            self.case.chosen.call,
            ranges,
            tuple(dict.fromkeys(blocks)),
            tuple((number, *ends) for number, ends in equal.items()),
            writes=bool(subject.view.outward),
        )

    def loosened(self, task: LiveTask, mockup: Path) -> LiveTask:
        """The same for a mock-up that takes any register as it comes: those that point into a structure still have to, and
        the others must not."""
        guarded, outside = [], []
        for number, value in self._read().items():
            held = next((r for r in task.ranges if r.start <= value < r.end), None)
            if held is None:
                outside.append(number)
            else:
                guarded.append((number, held.start, held.end - 1))
        return replace(task, mockup=mockup, guarded=tuple(guarded), outside=tuple(outside))

    def _block(self, structure: Structure) -> Allocation:
        base = structure.block_base or structure.base
        found = next((a for a in self.allocations if a.address <= base < a.address + a.bytes), None)
        if found is None:
            raise NoTrialError("the heap block of a structure is not known")
        return found

    def _read(self) -> dict[int, int]:
        """The general registers that the mock-up reads, as they were at the call that it was made for."""
        known = self.source.trace.registers.gpr
        read = {
            live.location.number
            for live in self.source.lifted.live_ins
            if isinstance(live.location, Gpr) and live.location.number < GENERAL
        }
        return {number: known[number] for number in sorted(read)}


@dataclass(frozen=True, slots=True)
class LiveWays:
    """A way to try the candidates of a region in the running program, as long as the run's files are there."""

    bench: LiveBench
    subject: Callable[[Variant], LiveSubject]
    variants: Mapping[str, Variant]
    """The builds by the ids of the report; of two that are the same program the one that is there."""

    def trial(self, variant: Variant) -> LiveTrial:
        """The outcome of one of them."""
        return self.bench.trial(self.subject(variant))


def _end(structure: Structure) -> int:
    """The end of the last element, where rows may lie apart."""
    return structure.base + sum((d.count - 1) * d.stride for d in structure.dims) + structure.element_bytes


@dataclass(slots=True)
class _Trial:
    """One candidate in the running program."""

    bench: LiveBench
    subject: LiveSubject
    task: LiveTask
    time: TrialTime
    after: float = PAIRS
    """So many runs are needed once it is prepared."""
    pace: float = 0.0
    """The seconds that each of the runs to come takes at least, as far as is known."""
    survey: LiveRun | None = None
    """Which calls the mock-up does, each tried in a copy of the process; None: all, so far."""
    ending: Path | None = None
    """The mock-up that ends the process at an access that goes to a wrong place."""
    held: bool = False
    """Whether one run had all its calls so, and came to its end."""

    def prepared(self) -> tuple[LiveRun, OutputComparison]:
        """Ordinary runs, and one with all calls as the mock-up that can be."""
        case = self.bench.case
        case.space.progress.step("trying a layout in the running program")
        for number, calls in enumerate((LiveCalls.NONE, LiveCalls.LOADED)):
            if number == len(self.bench.ordinary):
                self.bench.ordinary.append(self._run(calls, 0, 3 - number + self.after))
        one, other = self.bench.ordinary
        if one.returncode != other.returncode:
            raise NoTrialError("the program does not end the same way each time")
        if one.calls < MEASURE.live_fewest_calls:
            raise NoTrialError("too few calls follow the one that was studied")
        return self._general(self._all(general=False))

    def carried_out(self) -> LiveTrial:
        """The same, and pairs of runs."""
        whole, compared = self.prepared()
        one, other = self.bench.ordinary
        self.pace = OF_ALL * (whole.seconds + min(one.seconds, other.seconds))
        times = self._timed()
        if times.converted and (unlike := unlike_by_itself(times.undisturbed)) is not None:
            raise NoTrialError(unlike)
        found = LiveTrial(
            times.ratio, "", whole.mockups, whole.passed, whole.conversions, times.calls, times.original_ns, times.layout_ns,
            min(one.cpu_seconds, other.cpu_seconds), whole.cpu_seconds, whole.returncode, len(whole.stdout),
            compared.own or 0, *self._counts(), unimproved(one, whole, self._surveyed()), self.held, self.task.last,
            times.converted, course(self.task.first, one, whole),
        )  # fmt: skip
        ratio = around(self._with_flushed(times) if times.converted else times.ratio, times)
        return replace(found, ratio=with_unimproved(ratio, found.unimproved))

    def _surveyed(self) -> int | None:
        """How many calls a survey came to, where these are not all. What it was like among them stands for the later ones,
        as a snapshot does for far fewer."""
        return self.task.last - self.task.first + 1 if self.task.last else None

    def _counts(self) -> tuple[int, int]:
        """The calls at which a survey saw the mock-up stop, and those at which it saw it die."""
        if self.survey is None:
            return 0, 0
        roles = self.survey.roles
        return int(((roles & np.uint64(STOPPED)) != 0).sum()), int(((roles & np.uint64(FAULTED)) != 0).sum())

    def _run(self, calls: LiveCalls, seed: int, needed: float, mockup: Path | None = None) -> LiveRun:
        """One run, of at least as many such runs as are ``needed``."""
        case, known = self.bench.case, self.bench.ordinary

        def run(seconds: float) -> LiveRun:
            return run_live(
                case.settings.command,
                case.profiled.entry,
                replace(self.task, mockup=mockup or self.task.mockup),
                calls,
                seed=seed,
                quick=self.bench.is_quick(),
                stdin_path=case.stdin,
                timeout=seconds,
                scratch=case.space.scratch,
            )

        return in_time(run, self.time, needed, known, case.settings.timeout, self.pace)

    def _all(self, *, general: bool) -> LiveRun:
        """The run in which all calls are the mock-up's that can be. Before it, one in which each access is held against the
        layout: a pointer to other memory that is there would not end the program, and need not be seen in what it prints."""
        self.ending, self.held = self.subject.ending(general), False
        if self.ending is not None:
            self.held = self._held(self.ending)
        return self._to_its_end(self.task.mockup)

    def _held(self, ending: Path) -> bool:
        """Tells whether ``ending`` came to its end, with the calls left out that it cannot do: it is slow, and need not."""
        try:
            self._to_its_end(ending)
        except (ProgramError, TooSlowError):
            return False
        return True

    def _to_its_end(self, mockup: Path) -> LiveRun:
        """The run in which all calls are those of ``mockup`` that can be. Where it dies at one, a survey tells all that it
        cannot do; these are left to the original."""
        dead, needed = 0, 1 + OF_ALL * self.after + (mockup == self.ending)
        while True:
            run = self._run(LiveCalls.ALL, 0, needed, mockup)
            if run.error:
                raise NoTrialError(run.error)
            if not run.inside:
                return run
            if self.survey is None:
                self._look(run)
            elif dead == MOST_DEATHS:
                raise NoTrialError(f"the mock-up ended the program at call {run.inside} ({run.end})")
            else:
                dead += 1
                self._leave((run.inside,))

    def _look(self, died: LiveRun) -> None:
        """Has each call tried as the mock-up in a copy of the process; ``died`` is the run that gave reason to."""
        self.survey = found = self._run(LiveCalls.SURVEY, 0, 2 + OF_ALL * self.after, self.ending)
        if found.error:
            raise NoTrialError(found.error)
        failed = np.flatnonzero(found.roles & np.uint64(STOPPED | FAULTED)) + self.task.first
        if not len(failed):
            self._leave((died.inside,))
            return
        if len(failed) > MOST_LEFT_OUT or len(failed) * 2 > found.surveyed - self.task.first + 1:
            stopped, faulted = self._counts()
            raise NoTrialError(
                f"the mock-up cannot do {len(failed)} of {found.surveyed - self.task.first + 1} calls: {stopped} take a way "
                f"that no compared call took, {faulted} use other memory than the one studied"
            )
        self._leave(tuple(int(n) for n in failed))
        if found.surveyed < self.task.first + self.bench.ordinary[0].calls - 1:
            self.task = replace(self.task, last=found.surveyed)

    def _leave(self, calls: tuple[int, ...]) -> None:
        """Leaves these calls to the original, too."""
        left = tuple(sorted({*self.task.left_out, *calls}))
        if len(left) > MOST_LEFT_OUT:
            raise NoTrialError(f"the mock-up cannot do more than {MOST_LEFT_OUT} of the calls")
        self.task = replace(self.task, left_out=left)

    def _general(self, run: LiveRun) -> tuple[LiveRun, OutputComparison]:
        """``run``, or where many calls have other arguments than the one studied, one with a mock-up that takes any;
        compared with the ordinary ones."""
        found = self.bench.compared(run)
        later = max(0, self.task.first + run.calls - 1 - self.task.last) if self.task.last else 0
        if run.passed - len(self.task.left_out) - later > MEASURE.live_passed * run.calls:
            path = self.subject.general()
            if path is not None:
                self.task = replace(self.bench.loosened(self.task, path), left_out=(), last=0)
                self.survey = None
                run = self._all(general=True)
                found = self.bench.compared(run)
        if not run.mockups:
            raise NoTrialError("no call of it has the arguments of the one that was studied")
        return run, found

    def _pair(self, seed: int) -> tuple[LiveRun, LiveRun]:
        """The pair of runs with this number, from 1 on."""
        first, second = (LiveCalls.ONE, LiveCalls.OTHER) if seed % 2 else (LiveCalls.OTHER, LiveCalls.ONE)
        found = []
        for number, calls in enumerate((first, second), 2 * (seed - 1)):
            run = self._run(calls, seed // 2, max(PAIRS - number, 0))
            if run.error or run.inside:
                raise NoTrialError(run.error or f"the mock-up ended the program at call {run.inside} ({run.end})")
            self.bench.compared(run)
            self.pace = run.seconds
            found.append(run)
        return found[0], found[1]

    def _timed(self) -> LiveTimes:
        """Pairs of runs until there are enough, or the time is over."""
        pairs: list[tuple[LiveRun, LiveRun]] = []
        step = self.bench.case.space.progress
        while len(pairs) < MEASURE.live_pairs:
            begun = own_time()
            pairs.append(self._pair(len(pairs) + 1))
            step.count("trying a layout in the running program", len(pairs), MEASURE.live_pairs)
            took = own_time() - begun
            if len(pairs) >= MEASURE.live_fewest_pairs and own_time() + took > self.time.enough:
                break
        found = live_times(pairs, self.bench.ordinary)
        if found is None:
            raise NoTrialError("too few of its calls could be timed in both ways")
        return found

    def _with_flushed(self, warm: LiveTimes) -> Ratio:
        """The data are converted right before most calls, which leaves them in the caches as no program has them: the ratio
        with the copies flushed then stands beside that with warm ones."""
        self.task = replace(self.task, flush=True)
        cold = self._timed().ratio
        own = warm.ratio
        lo, hi = min(own.lo, cold.lo), max(own.hi, cold.hi)
        return Ratio((own.median * cold.median) ** 0.5, lo, hi, own.restores + cold.restores)
