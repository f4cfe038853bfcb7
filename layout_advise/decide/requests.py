"""Requests of a decision: typed values that the pipeline answers.

A decision is a generator: it yields a request, is sent the answer, and returns the :class:`Decision`. Nothing in it calls an
earlier stage; that is the pipeline's part.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import TypeVar

from layout_advise.measure.live.outcome import LiveTrial
from layout_advise.measure.mode import Mode
from layout_advise.measure.stage import TimedAgain
from layout_advise.mockup.timing.timings import Timings
from layout_advise.mockup.timing.variants import Variant


@dataclass(frozen=True, slots=True)
class TimeInProgram:
    """Time the calls of kind number ``kind`` in further runs of the program, knowing the fastest canary seen since."""

    kind: int
    canary: int


@dataclass(frozen=True, slots=True)
class MeasureAgain:
    """Build ``variant`` anew with all that it is compared with, for the calls of kind number ``kind``, and time these in new
    restores, as :func:`~layout_advise.measure.stage.measure_again` does. ``first`` are the first times, of which ``mode``
    counts."""

    kind: int
    variant: Variant
    first: Timings
    mode: Mode
    unrolled: bool
    places: bool = True
    restores: int | None = None


@dataclass(frozen=True, slots=True)
class MeasureMore:
    """Time ``candidates``, and what they are compared with, in further restores, at the calls of kind number ``kind``;
    ``first`` are the times so far, to which these are added."""

    kind: int
    first: Timings
    candidates: frozenset[Variant]


@dataclass(frozen=True, slots=True)
class TimeCode:
    """Time the calls of kind number ``kind`` by the original's machine code on these layouts (ids), as
    :func:`~layout_advise.measure.stage.measure_code` does; ``first`` are the first times of all. Without ``more``, known
    times of these layouts, to ``look`` at them in a few processes is enough."""

    kind: int
    layouts: tuple[str, ...]
    first: Timings
    look: bool = False
    more: Timings | None = None


@dataclass(frozen=True, slots=True)
class RunLive:
    """Try ``variant`` in the running program, where calls of kind number ``kind`` are the region's."""

    kind: int
    variant: Variant


Request = TimeInProgram | MeasureAgain | MeasureMore | TimeCode | RunLive
Answer = float | TimedAgain | Timings | LiveTrial | None
Result = TypeVar("Result")
Asking = Generator[Request, Answer, Result]
"""Yields requests, is sent answers (None: it could not be done), and returns its result."""


def time_in_program(kind: int, canary: int) -> Asking[float | None]:
    """The time in ns of a call in further runs of the program."""
    answer = yield TimeInProgram(kind, canary)
    assert answer is None or isinstance(answer, float)
    return answer


def measure_again(request: MeasureAgain) -> Asking[TimedAgain | None]:
    """The times of a candidate built anew; None where it could not be built."""
    answer = yield request
    assert answer is None or isinstance(answer, TimedAgain)
    return answer


def measure_more(request: MeasureMore) -> Asking[Timings | None]:
    """All times of the candidates, the further ones included; None where the time for it is spent."""
    answer = yield request
    assert answer is None or isinstance(answer, Timings)
    return answer


def time_code(request: TimeCode) -> Asking[Timings | None]:
    """The times of machine code on other layouts beside the original's; None where there is none, or no time left."""
    answer = yield request
    assert answer is None or isinstance(answer, Timings)
    return answer


def run_live(request: RunLive) -> Asking[LiveTrial]:
    """What came out of a trial in the running program, or why there was none."""
    answer = yield request
    assert isinstance(answer, LiveTrial)
    return answer
