"""Watching the running program: where its time goes (:func:`sample`), how often and how long the hotspot runs."""

from __future__ import annotations

import resource
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from layout_advise.errors import ProgramError
from layout_advise.tracer.process.agent_run import agent_run
from layout_advise.tracer.process.channel import MAX_TIMED, Mode, Orders, State, Status
from layout_advise.tracer.process.launch import Start, describe_end, wait_for_end
from layout_advise.tracer.process.patching import Entry
from layout_advise.tracer.process.procfs import parse_mappings
from layout_advise.tracer.process.stopped_program import AT_ONCE, Calm, Sample
from layout_advise.tracer.sampling.call_chains import SAMPLED
from layout_advise.tracer.sampling.turns import own_turn
from layout_advise.tracer.trace import trace

MAX_SAMPLES = 1 << 20
MAX_STACKS = 1 << 13
_HEAD = 24
"""Bytes before the samples: their number, how many there is room for, and the CPU time at the newest one."""
UNSEEN_SECONDS = 0.05
"""So much CPU time goes by without a sample in any program: until the first tick of the kernel, behind the last, and while
its memory is given back."""


@dataclass(frozen=True, slots=True, eq=False)
class SampleRun:
    """One whole run. ``samples`` are run-time instruction addresses, one per ``interval`` of CPU time; ``mappings`` resolve
    them. ``sampled``: as many of the samples, or as many of them as are kept, drawn at random, each with its stack.
    ``exit_status`` is None where a ``signal`` ended the program. ``error`` says why there are no samples."""

    exit_status: int | None
    signal: int | None
    seconds: float
    samples: NDArray[np.uint64]
    mappings: tuple[trace.Mapping, ...]
    error: str = ""
    cpu_seconds: float = 0.0
    """CPU time of the program and of the processes that it started and waited for."""
    own_seconds: float = 0.0
    """CPU time of the program's own process at its newest sample."""
    queued_seconds: float = 0.0
    """The time in which its first thread could have run and had no processor."""
    sampled: NDArray[np.void] = field(default_factory=lambda: np.empty(0, SAMPLED))

    @property
    def outside(self) -> float:
        """The part of the CPU time (0..1) that no sample could see: of processes that the program started, or of a program
        that took its place."""
        return max(0.0, self.cpu_seconds - self.own_seconds - UNSEEN_SECONDS) / max(self.cpu_seconds, UNSEEN_SECONDS)

    @property
    def waits(self) -> float:
        """The part of the elapsed time (0..1) in which the program neither ran nor stood in line for a processor: files,
        timers, locks, other machines."""
        busy = self.cpu_seconds + self.queued_seconds + UNSEEN_SECONDS
        return max(0.0, self.seconds - busy) / max(self.seconds, UNSEEN_SECONDS)

    @property
    def processors(self) -> float:
        """On how many processors the program ran at once, at the mean over its run: 1 where it ran on one or less."""
        return max(1.0, self.cpu_seconds / max(self.seconds, UNSEEN_SECONDS))


MOST_NESTED = 0.01
"""A hotspot with no more than this part of nested calls among those seen is not taken for a recursive one."""


@dataclass(frozen=True, slots=True)
class Probe:
    """``calls`` of the hotspot in all, ``times`` of the timed ones (outermost calls of the first thread that came).

    ``stopped``: the program was ended after ``max_calls``; its exit status then means nothing. ``threads`` counts those seen
    while calls were timed; ``nested``: calls of the hotspot that timed ones made.
    """

    calls: int
    times: tuple[Sample, ...]
    exit_status: int | None
    signal: int | None
    stopped: bool
    threads: int
    nested: int
    seconds: float
    quick_ns: tuple[float, ...] = ()
    """Of a quick probe: the time of each timed call, less what timing a call that does nothing takes. Canaries are beside
    the first and the last one only."""
    counting_ns: float = 0.0
    """Of a loop in chunks: what counting the iterations of one takes at most."""
    passages: int = 0
    """How often the entry was passed: of a loop in chunks once for each iteration."""

    @property
    def recursive(self) -> bool:
        """True where the hotspot calls itself more than now and then, as an interpreter does that starts up with itself."""
        return self.nested > MOST_NESTED * (len(self.times) + self.nested)

    @property
    def canary(self) -> int:
        """The slowest canary beside the timed calls; 0 where there is none."""
        return max((one.canary for one in self.times), default=0)


def _run_to_end(process: subprocess.Popen[bytes], begun: float, timeout: float | None, what: str) -> tuple[float, float]:
    """Waits for the end; returns the seconds until then since it was ``begun``, and those in line for a processor."""
    queued = wait_for_end(process, timeout, what, "raise --timeout or give it a smaller input")
    return time.monotonic() - begun, queued


def _end(returncode: int) -> tuple[int | None, int | None]:
    return (None, -returncode) if returncode < 0 else (returncode, None)


def sample(
    command: Sequence[str],
    *,
    stdin_path: Path | None = None,
    env: Mapping[str, str] | None = None,
    timeout: float | None = None,
    interval: float = 0.001,
    stdout: Path | None = None,
    discard: bool = False,
) -> SampleRun:
    """Run ``command`` to its end, its output passed through (its standard output into the file ``stdout``, if given; all of
    it nowhere: ``discard``), and sample it every ``interval`` seconds of CPU time. What it started lives on where its output
    was not discarded: that is the run that the user asked for.

    Raises :class:`ProgramError` if it cannot be started or exceeds ``timeout`` seconds (it is killed then).
    """
    start = Start(command, stdin_path, env, discard, stdout)
    orders = Orders(Mode.SAMPLE, interval_ns=max(1, int(interval * 1e9)))
    tables = {"samples": _HEAD + 8 * MAX_SAMPLES, "sampled": SAMPLED.itemsize * MAX_STACKS}
    with agent_run(start, orders, tables=tables, spare_children=not discard) as (folder, process):
        before = _children_seconds()
        seconds, queued = _run_to_end(process, folder.begun, timeout, "it was sampled")
        cpu_seconds = _children_seconds() - before
        status = folder.status()
        samples, sampled, own_seconds = _samples(folder.path)
        maps = folder.path / "maps"
        mappings = parse_mappings(maps.read_text()) if maps.exists() else ()
        error = status.error
        if status.state == State.ABSENT:
            error = "the agent was not loaded into the program (static or setuid?)"
        return SampleRun(
            *_end(process.returncode), seconds, samples, mappings, error, cpu_seconds, own_seconds, queued, sampled
        )


def _children_seconds() -> float:
    """CPU time of all processes that were waited for, theirs included."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _samples(folder: Path) -> tuple[NDArray[np.uint64], NDArray[np.void], float]:
    """The addresses that the sampler left, those with stacks, and the CPU seconds of the process at the newest one."""
    count, _, cpu_ns = (int(number) for number in np.fromfile(folder / "samples", np.uint64, _HEAD // 8))
    addresses = np.fromfile(folder / "samples", np.uint64, min(count, MAX_SAMPLES), offset=_HEAD)
    return addresses, np.fromfile(folder / "sampled", SAMPLED, min(count, MAX_STACKS)), cpu_ns / 1e9


def _quick(times: Sequence[Sample], status: Status) -> tuple[float, ...]:
    rate = status.ns_per_tick
    return tuple(max(0.0, (t.tsc - status.empty) * rate) for t in times) if rate is not None else ()


def probe(
    command: Sequence[str],
    entry: Entry,
    *,
    stdin_path: Path | None = None,
    env: Mapping[str, str] | None = None,
    timeout: float | None = None,
    first: int = 1,
    timed: int = MAX_TIMED,
    max_calls: int | None = None,
    quick: bool = False,
    calm: Calm = AT_ONCE,
) -> Probe:
    """Run ``command``, its output discarded, count all calls of ``entry`` and time ``timed`` of them from call ``first``.

    Of a loop in chunks a call is a whole chunk of its iterations, or what of one comes before the loop ends. ``max_calls``
    ends the program when that many calls are done. ``quick`` reads no clock but the time stamp counter, for
    calls that reading the others would outlast: only ``tsc`` of the samples counts. Raises
    :class:`ProgramError` if it cannot be started,
    exceeds ``timeout`` seconds or never loads the hotspot's module; a crash is data (``signal``).
    """
    if first < 1 or not 0 <= timed <= MAX_TIMED:
        raise ValueError(f"calls are numbered from 1, and at most {MAX_TIMED} are timed")
    orders = Orders(
        Mode.PROBE, entry, first=first, timed=timed, max_calls=max_calls or 0, quick=quick,
        calm=(calm.ticks, calm.patience_ns),
    )  # fmt: skip
    with own_turn(), agent_run(Start(command, stdin_path, env), orders) as (folder, process):
        seconds, _ = _run_to_end(process, folder.begun, timeout, "its hotspot was timed")
        status = folder.status()
        if status.state < State.PATCHED:
            raise _never_patched(entry, status, process.returncode)
        times = tuple(Sample(*values) for values in folder.samples(min(status.timed, MAX_TIMED)))
    stopped = status.state == State.STOPPED
    calls = status.calls_of(entry)
    calls = min(calls, max_calls) if stopped and max_calls else calls
    counting_ns = entry.chunk * status.empty / 1000 if entry.chunk else 0.0
    exit_status, number = _end(process.returncode)
    quick_ns = _quick(times, status) if quick else ()
    return Probe(
        calls, times, exit_status, number, stopped, status.threads, status.nested, seconds, quick_ns, counting_ns,
        status.calls,
    )  # fmt: skip


def _never_patched(entry: Entry, status: Status, returncode: int) -> ProgramError:
    absent = "the agent was not loaded (static or setuid?)"
    why = status.error or (f"{entry.path.name} was not loaded" if status.state else absent)
    return ProgramError(f"cannot watch {entry.symbol or hex(entry.address)}", why, describe_end(returncode))
