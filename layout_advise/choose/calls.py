"""The call to stop at, from the times of the first calls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from layout_advise.choose.by_time import Window
from layout_advise.choose.policy import CHOOSE
from layout_advise.errors import NeverCalledError, UsageError
from layout_advise.mockup.timing.policy import TIMING
from layout_advise.mockup.timing.statistics import median_of, quantile_of


@dataclass(frozen=True, slots=True)
class ChosenCall:
    """``call`` counts from 1. ``in_situ_ns`` is the median over calls N to N+4 of their undisturbed times in the running
    program, ``spread`` the half range of these divided by their median; ``windows`` are the ns of these calls in each of
    the processes."""

    call: int
    calls: int
    in_situ_ns: float | None
    spread: float
    windows: tuple[tuple[float, ...], ...] = ()
    canaries: tuple[tuple[int, ...], ...] = ()
    """The canaries beside the calls of ``windows``."""
    canary: int = 0
    """Ticks of the fastest canary beside a timed call; 0: not known."""
    between_ns: float | None = None
    """What passes from one call to the next: the caches are as the call left them where that is little. None: not known."""
    quantile: float = TIMING.undisturbed
    """Which quantile of the times of a call over the processes stands for it."""
    alike: tuple[int, ...] = ()
    """Where those beside it are not like it: the calls that take as long, ascending. It is timed alone then."""
    looked: tuple[Window, ...] = ()
    """The times of calls all over the run, where these were looked at."""

    @property
    def timed_calls(self) -> int:
        """How many calls from it on are timed in the program."""
        return 1 if self.alike else CHOOSE.in_situ_calls

    def usual(self) -> ChosenCall:
        """The same with the usual times of the calls in place of the undisturbed ones: what is measured of data beyond the
        L2 are usual times, too (``docs/decisions/0045``)."""
        return replace(self, quantile=TIMING.typical).timed(self.windows, self.canaries)

    def timed(self, windows: Sequence[Sequence[float]], canaries: Sequence[Sequence[int]]) -> ChosenCall:
        """The same with the times in these processes; as it is where there are none."""
        if not windows:
            return self
        in_situ, spread = in_situ_time(windows, canaries, TIMING.calm * self.canary, self.quantile)
        kept = tuple(map(tuple, windows)), tuple(map(tuple, canaries))
        return replace(self, in_situ_ns=in_situ, spread=spread, windows=kept[0], canaries=kept[1])


def undisturbed_calls(processes: Sequence[Sequence[float]]) -> list[float]:
    """The least time of each call over processes that do the same work: a disturbed phase covers not all of them."""
    return [min(times) for times in zip(*processes, strict=False)]


def latest(calls: int) -> int:
    """The last call that leaves room for the two further calls to verify at."""
    return max(1, calls - (CHOOSE.verified_calls - 1))


def preferred(calls: int) -> int:
    """The call to stop at where all are alike."""
    return min(CHOOSE.preferred_call, latest(calls))


def choose_call(times: Sequence[float], calls: int, wanted: int | None) -> ChosenCall:
    """The call to stop at: the wanted one, else one whose time is near the mean of all but the first call, the fifth before
    all others. Calls may take different ways through the data, and what gains much on a quick one gains less on a slow one:
    one in the middle stands for all.

    ``times`` are the ns of the first calls, ``calls`` how many there were in all. Raises ProgramError when the hotspot
    was never reached, UsageError when there are fewer calls than wanted.
    """
    if calls == 0:
        raise NeverCalledError("the hotspot is never called", "", "choose another one with --hotspot")
    if wanted is not None:
        if wanted > calls:
            raise UsageError(f"--call {wanted}: the hotspot is called {calls} times only")
        return _chosen(wanted, times, calls)
    steady = list(times[1:]) or list(times)
    if not steady:
        return _chosen(preferred(calls), times, calls)
    middle = median_of(steady)
    mean = fmean(t for t in steady if middle / CHOOSE.far <= t <= middle * CHOOSE.far)
    first = preferred(calls)
    last = min(latest(calls), CHOOSE.latest_call, len(times))
    others = sorted((n for n in range(2, last + 1) if n != first), key=lambda n: abs(n - first))

    def within(numbers: Sequence[int], near: float) -> list[int]:
        return [n for n in numbers if n <= len(times) and abs(times[n - 1] - mean) <= near * mean]

    stands = (
        within([first], CHOOSE.nearby) or within(others, CHOOSE.near) or within([first, *others], CHOOSE.roughly) or [first]
    )
    return _chosen(stands[0], times, calls)


def _chosen(call: int, times: Sequence[float], calls: int) -> ChosenCall:
    window = times[call - 1 : call - 1 + CHOOSE.in_situ_calls]
    in_situ, spread = in_situ_time([window] if window else [])
    return ChosenCall(call, calls, in_situ, spread)


def calm_time(
    processes: Sequence[Sequence[float]], canaries: Sequence[Sequence[int]], k: int, limit: float, quantile: float
) -> float:
    """The quantile of the times of call ``k`` (from 0) over the processes: over those with a canary up to ``limit`` where
    these are several."""
    calm = [times[k] for times, seen in zip(processes, canaries, strict=False) if seen[k] <= limit]
    return quantile_of(calm if len(calm) >= CHOOSE.fewest_calm else [times[k] for times in processes], quantile)


def in_situ_time(
    processes: Sequence[Sequence[float]],
    canaries: Sequence[Sequence[int]] = (),
    limit: float = 0.0,
    quantile: float = TIMING.undisturbed,
) -> tuple[float | None, float]:
    """Median over the calls of their undisturbed times, and half their range divided by it; of the first call alone,
    where it differs from the others in most processes.

    ``processes`` holds the times of the same calls in several processes, which do the same work: of each call the first
    decile over the processes is its undisturbed time: over those with a canary up to ``limit`` where these are several.
    Another ``quantile`` may stand for it.
    """
    calls = min((len(times) for times in processes), default=0)
    if calls == 0:
        return None, 0.0
    each = [calm_time(processes, canaries, k, limit, quantile) for k in range(calls)]
    middle = median_of(each)
    spread = (max(each) - min(each)) / 2 / middle if middle else 0.0
    apart = median_of([times[0] / around for times in processes if (around := median_of(times[:calls]))] or [1.0])
    return each[0] if abs(apart - 1) > CHOOSE.unlike else middle, spread


@dataclass(frozen=True, slots=True)
class Stretch:
    """Calls ``first`` to ``last`` of a run, of which one takes ``ns`` (the median)."""

    first: int
    last: int
    ns: float


def stretches(times: Sequence[float], canaries: Sequence[int], limit: float) -> list[Stretch]:
    """The times of calls in the course of the run, from the calls beside whose canary nothing slowed the processor (all
    where that is not known, ``limit`` 0); without stretches that have hardly any."""
    if len(times) < 2 * CHOOSE.stretch_calls:
        return []
    size = max(CHOOSE.stretch_calls, -(-len(times) // CHOOSE.stretches))
    found = []
    for start in range(0, len(times), size):
        part = range(start, min(start + size, len(times)))
        calm = [times[k] for k in part if not limit or canaries[k] <= limit]
        if len(calm) >= CHOOSE.fewest_in_stretch:
            found.append(Stretch(part.start + 1, part.stop, median_of(calm)))
    return found
