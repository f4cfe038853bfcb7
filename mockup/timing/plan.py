"""What is timed, in what, and how much of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from layout_advise.mockup.timing.variants import Variant
from layout_advise.tracer.process.stopped_program import Clock, Range, StoppedProgram


class Restorer(Protocol):
    """Where restored processes come from (CRIU or fork)."""

    def restore(self) -> StoppedProgram:
        """A fresh stopped program."""
        ...


@dataclass(frozen=True, slots=True)
class Timed:
    """A variant to time, and its shared object (None for the original)."""

    name: Variant
    shared_object: Path | None
    unwritten: tuple[Range, ...] = ()
    """Written by the original but not by this variant (it writes to its own buffers instead): need not be saved."""
    blocked: bool = False
    """Whether it has loops over the elements of a block, which compilers make vector instructions of by themselves."""
    beside: frozenset[Variant] | None = None
    """The candidates that it is timed for: without them it need not be; None: for all."""
    waits: bool = False
    """Whether it is a layout's build with a promise that made no vectors: it is timed if the unchanged layout gains by that
    promise (``docs/decisions/0144``)."""


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
    apart_calls: int = 0
    """Of a batch whose calls are timed one by one too; 0: none."""
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
    """Whether new layouts are also timed with the conversion around every call."""


@dataclass(frozen=True, slots=True)
class Memory:
    """What of the program's memory a call concerns: the ranges that it writes, and those that it touches."""

    written: Sequence[Range] = ()
    touched: Sequence[Range] = ()
