"""The bench that trials of a region's candidates in the running program share (``docs/decisions/0069``)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from layout_advise.errors import OvertimeError
from layout_advise.layoutalgebra.derive.structure import Candidate, Structure
from layout_advise.measure.effort import TrialTime, trial_time, trials_end
from layout_advise.measure.policy import MEASURE
from layout_advise.mockup.ir.effects import Gpr
from layout_advise.mockup.remap.conversion_view import View
from layout_advise.observe.case import Case
from layout_advise.propose.source import Source
from layout_advise.tracer.live.orders import MOST_RANGES, LiveTask
from layout_advise.tracer.live.outcome import LiveRun
from layout_advise.tracer.live.output import OutputComparison, compare_output
from layout_advise.tracer.process.stopped_program import Range
from layout_advise.tracer.sampling.turns import own_time
from layout_advise.tracer.trace.trace import Allocation

GENERAL = 16
Found = TypeVar("Found")
PAIRS = 2 * MEASURE.live_fewest_pairs
"""The fewest runs that times are of, after those that prepare a trial."""
OVER = "the time for trials is over"


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


class UntimedError(NoTrialError):
    """Calls are not timed, for this reason; it speaks against nothing else of a trial."""


class TooSlowError(UntimedError):
    """They are not, as the program takes too long for it."""


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
        raise TooSlowError(OVER)
    slow = "in a trial the program takes {}: too slow for one"
    if needed and pace > seconds:
        if seconds < time.alone:
            raise TooSlowError(OVER)
        raise TooSlowError(slow.format(time.times_alone(pace)))
    try:
        return run(seconds)
    except OvertimeError as error:
        if seconds < time.alone:
            raise TooSlowError(OVER) from error
        raise TooSlowError(slow.format(f"more than {time.times_alone(seconds)}")) from error


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
        return ""

    def untimed(self) -> str:
        """The reason why calls are not timed by themselves in the running program; empty where they are."""
        ns = self.case.per_call(self.case.chosen.in_situ_ns)
        if ns is not None and ns < MEASURE.live_least_ns:
            return f"a call takes {ns:.0f} ns, too short to be timed by itself"
        if self.case.probe.calls - self.case.chosen.call < MEASURE.live_fewest_calls:
            return "too few calls follow the one that was studied"
        return ""

    def time(self, mockup: Path) -> TrialTime:
        """How long the trial of a mock-up may take that begins now. Raises where it cannot be made in that time."""
        now, alone = own_time(), self.case.profiled.run.seconds
        least = MEASURE.live_asked if self.is_asked() else MEASURE.live_rest
        begun, over = self.times = self.times or (now, trials_end(now, self.begun + self.seconds, self.seconds, least))
        found = trial_time(begun, over, alone, now, again=mockup in self.tried)
        runs = 4 - len(self.ordinary) + self.after()
        if runs * alone > found.until - now:
            if self.tried and mockup not in self.tried:
                raise NoTrialError("the time for trials went into others")
            left = f"{found.until - now:.0f} s"
            raise NoTrialError(f"the program takes {alone:.0f} s, and would have to run {runs} times in {left} (--budget)")
        self.tried.add(mockup)
        return found

    def is_asked(self) -> bool:
        """Tells whether the user wants trials, whatever the snapshot says."""
        return self.case.settings.live == "always"

    def after(self) -> int:
        """The fewest runs that a trial has once it is prepared."""
        return 0 if self.untimed() else PAIRS

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


def _end(structure: Structure) -> int:
    """The end of the last element, where rows may lie apart."""
    return structure.base + sum((d.count - 1) * d.stride for d in structure.dims) + structure.element_bytes
