"""A candidate tried in the running program, which is started some more times for it (``docs/decisions/0069``)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from layout_advise.errors import LayoutAdviseError, ProgramError
from layout_advise.measure.effort import TrialTime
from layout_advise.measure.live.bench import PAIRS, LiveBench, LiveSubject, NoTrialError, TooSlowError, UntimedError, in_time
from layout_advise.measure.live.outcome import LiveTrial, around, course, unimproved, unlike_by_itself, with_unimproved
from layout_advise.measure.live.ratio import LiveTimes, live_times
from layout_advise.measure.policy import MEASURE
from layout_advise.mockup.timing.statistics import Ratio
from layout_advise.mockup.timing.variants import Variant
from layout_advise.tracer.live.orders import MOST_LEFT_OUT, LiveCalls, LiveTask
from layout_advise.tracer.live.outcome import FAULTED, STOPPED, LiveRun
from layout_advise.tracer.live.output import OutputComparison
from layout_advise.tracer.live.run import run_live
from layout_advise.tracer.sampling.turns import own_time

MOST_DEATHS = 4
"""So many calls at which the mock-up ends the program although a survey did not tell are left to the original. With more
there is no trial, or where one is asked for none of the calls from there on."""
OF_ALL = 0.5
"""A run of a pair takes at least this part of one with all calls as the mock-up: half of its calls are."""

LIMITED = 0.5
"""Where a trial is asked for, calls are the mock-up's for this part of the time that a run may take; a survey has no more
of it, either; the rest is the program's."""
SLOW = "its calls take too long in a trial"


@dataclass(frozen=True, slots=True)
class PreparedTrial:
    """A candidate that came to the program's end as the mock-up of all calls that ``task`` leaves to it, in ``run``, and
    after which the program had done what it does ordinarily. ``held``: with each access held against the layout before."""

    task: LiveTask
    run: LiveRun
    held: bool


def tried(bench: LiveBench, subject: LiveSubject) -> LiveTrial:
    """Tries a candidate; never raises for what can go wrong with it. Where the time is over, only what was tried before is
    tried again. Calls that are not timed by themselves run so where a trial is asked for."""
    try:
        if why := bench.refusal() or (not bench.is_asked() and bench.untimed()):
            raise NoTrialError(why)
        trial = _Trial(bench, subject, bench.task(subject), bench.time(subject.mockup), bench.after(), bench.is_asked())
        return trial.carried_out()
    except NoTrialError as why:
        return LiveTrial(None, str(why))
    except LayoutAdviseError as error:
        return LiveTrial(None, error.line())
    except OSError as error:
        return LiveTrial(None, str(error))


def prepared(bench: LiveBench, subject: LiveSubject, until: float, after: int) -> PreparedTrial:
    """A candidate without its times, in time for so many runs ``after`` it. Raises LayoutAdviseError or
    :class:`NoTrialError` where it cannot be tried."""
    if why := bench.refusal() or bench.untimed():
        raise NoTrialError(why)
    time = TrialTime(until, until, bench.case.profiled.run.seconds)
    trial = _Trial(bench, subject, bench.task(subject), time, after)
    run, _ = trial.prepared()
    return PreparedTrial(trial.task, run, 0 < run.mockups <= trial.held)


@dataclass(frozen=True, slots=True)
class LiveWays:
    """A way to try the candidates of a region in the running program, as long as the run's files are there."""

    bench: LiveBench
    subject: Callable[[Variant], LiveSubject]
    variants: Mapping[str, Variant]
    """The builds by the ids of the report; of two that are the same program the one that is there."""

    def trial(self, variant: Variant) -> LiveTrial:
        """The outcome of one of them."""
        return tried(self.bench, self.subject(variant))


@dataclass(slots=True)
class _Trial:
    """One candidate in the running program."""

    bench: LiveBench
    subject: LiveSubject
    task: LiveTask
    time: TrialTime
    after: float
    """So many runs are needed once it is prepared."""
    limited: bool = False
    """Calls are the mock-up's for a part of the time only that a run has, where they would take it all."""
    pace: float = 0.0
    """The seconds that each of the runs to come takes at least, as far as is known."""
    survey: LiveRun | None = None
    """Which calls the mock-up does, each tried in a copy of the process; None: all, so far."""
    ending: Path | None = None
    """The mock-up that ends the process at an access that goes to a wrong place."""
    held: int = 0
    """So many calls ran so in a run that came to its end."""

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
        if not one.calls:
            raise NoTrialError("no call of it followed")
        return self._general(self._all(general=False))

    def carried_out(self) -> LiveTrial:
        """The same, and pairs of runs."""
        whole, compared = self.prepared()
        if why := whole.error or self.bench.untimed() or (whole.ended and SLOW):
            return self._found(whole, compared, why)
        try:
            return self._with_times(whole, compared)
        except UntimedError as why:
            if not self.bench.is_asked():
                raise
            return self._found(whole, compared, str(why))

    def _with_times(self, whole: LiveRun, compared: OutputComparison) -> LiveTrial:
        """The trial with the times of pairs of runs. Raises :class:`UntimedError` where these tell nothing."""
        one, other = self.bench.ordinary
        self.pace = OF_ALL * (whole.seconds + min(one.seconds, other.seconds))
        times = self._timed()
        if times.converted and (unlike := unlike_by_itself(times.undisturbed)) is not None:
            raise UntimedError(unlike)
        found = replace(
            self._found(whole, compared, ""),
            timed=times.calls,
            original_ns=times.original_ns,
            layout_ns=times.layout_ns,
            converted=times.converted,
            course=course(self.task.first, one, whole),
        )
        ratio = around(self._with_flushed(times) if times.converted else times.ratio, times)
        return replace(found, ratio=with_unimproved(ratio, found.unimproved))

    def _found(self, whole: LiveRun, compared: OutputComparison, why: str) -> LiveTrial:
        """The trial without times of its calls, for this reason."""
        one, other = self.bench.ordinary
        stopped, faulted = self._counts()
        probe, first = self.bench.case.probe, self.task.first
        return LiveTrial(
            None,
            why,
            calls=whole.mockups,
            passed=probe.calls - first + 1 - whole.mockups if whole.ended or whole.error else whole.passed,
            conversions=whole.conversions,
            original_s=min(one.cpu_seconds, other.cpu_seconds),
            layout_s=whole.cpu_seconds,
            exit_status=whole.returncode,
            output_bytes=len(whole.stdout),
            own_words=compared.own or 0,
            stopped=stopped,
            faulted=faulted,
            unimproved=0.0 if why else unimproved(one, whole, self._surveyed()),
            held=0 < whole.mockups <= self.held,
            surveyed=self.task.last,
            ended=whole.ended,
        )

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
        part = LIMITED if calls == LiveCalls.ALL and self.limited else 0.0

        def run(seconds: float) -> LiveRun:
            task = replace(self.task, mockup=mockup or self.task.mockup, limit_s=part * seconds)
            task = replace(task, survey_s=min(task.survey_s, LIMITED * seconds))
            return run_live(
                case.settings.command,
                case.profiled.entry,
                task,
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
        self.ending, self.held = self.subject.ending(general), 0
        if self.ending is not None:
            self.held = self._held(self.ending)
        return self._to_its_end(self.task.mockup)

    def _held(self, ending: Path) -> int:
        """The calls that ``ending`` made to the program's end, without those that it cannot do; 0 where that did not come:
        it is slow, and need not."""
        try:
            return self._to_its_end(ending).mockups
        except (ProgramError, TooSlowError):
            return 0

    def _to_its_end(self, mockup: Path) -> LiveRun:
        """The run in which all calls are those of ``mockup`` that can be. Where it dies at one, a survey tells all that it
        cannot do; these are left to the original. Where a trial is asked for, one that gives up on the way,
        as memory is freed, is such a run, too: the program went on with its own code."""
        dead, needed = 0, 1 + OF_ALL * self.after + (mockup == self.ending)
        while True:
            run = self._run(LiveCalls.ALL, 0, needed, mockup)
            if run.error and not (run.mockups and self.bench.is_asked()):
                raise NoTrialError(run.error)
            if not run.inside:
                return run
            if self.survey is None:
                self._look(run)
            elif dead == MOST_DEATHS and self.limited:
                dead, self.task = dead + 1, replace(self.task, last=run.inside - 1)
            elif dead >= MOST_DEATHS:
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
        calls = found.surveyed - self.task.first + 1
        most = calls - 1 if self.bench.is_asked() else calls // 2
        if len(failed) > min(MOST_LEFT_OUT, most):
            stopped, faulted = self._counts()
            raise NoTrialError(
                f"the mock-up cannot do {len(failed)} of {calls} calls: {stopped} take a way "
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
            raise UntimedError("too few of its calls could be timed in both ways")
        return found

    def _with_flushed(self, warm: LiveTimes) -> Ratio:
        """The data are converted right before most calls, which leaves them in the caches as no program has them: the ratio
        with the copies flushed then stands beside that with warm ones."""
        self.task = replace(self.task, flush=True)
        cold = self._timed().ratio
        own = warm.ratio
        lo, hi = min(own.lo, cold.lo), max(own.hi, cold.hi)
        return Ratio((own.median * cold.median) ** 0.5, lo, hi, own.restores + cold.restores)
