"""Every function of a binary through the lifter, in processes of their own: nothing that happens there ends the survey."""

from __future__ import annotations

import multiprocessing
import resource
import signal
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import FrameType

from layout_advise.mockup.run.survey import LiftStop, SurveyOutcome, examine
from layout_advise.tracer.program.binary import ElfBinary
from layout_advise.tracer.program.symbols import Function

JOBS = 2
SECONDS = 20.0
"""Time limit for a function: lifting, emitting and compiling together."""
_GRACE = 5.0
_MEMORY = 3 << 30


class TooLong(Exception):
    """A function took longer than its time limit."""


@dataclass(slots=True)
class _Worker:
    process: BaseProcess
    pipe: Connection
    at: int | None = None
    deadline: float = 0.0


def survey(
    path: Path,
    functions: Sequence[Function],
    *,
    folder: Path,
    jobs: int = JOBS,
    seconds: float = SECONDS,
    progress: Callable[[int, int], None] = lambda done, total: None,
    told: Callable[[SurveyOutcome], None] = lambda outcome: None,
) -> tuple[SurveyOutcome, ...]:
    """The outcomes of ``functions`` of the ELF file at ``path``, in their order; ``folder`` is for the compiler's files.
    ``told`` gets each as soon as it is known."""
    found: dict[int, SurveyOutcome] = {}
    waiting = iter(range(len(functions)))
    workers: list[_Worker] = []
    try:
        workers += [_start(path, folder, seconds) for _ in range(min(jobs, len(functions)))]
        for worker in workers:
            _hand(worker, next(waiting, None), functions, seconds)
        while any(worker.at is not None for worker in workers):
            wait([w.pipe for w in workers if w.at is not None], timeout=1.0)
            for place, worker in enumerate(workers):
                outcome = _ask(worker, functions)
                if outcome is None or worker.at is None:
                    continue
                found[worker.at] = outcome
                told(outcome)
                progress(len(found), len(functions))
                if not worker.process.is_alive():
                    workers[place] = worker = _start(path, folder, seconds)
                _hand(worker, next(waiting, None), functions, seconds)
    finally:
        for worker in workers:
            worker.process.kill()
            worker.process.join()
    return tuple(found[k] for k in sorted(found))


def _start(path: Path, folder: Path, seconds: float) -> _Worker:
    context = multiprocessing.get_context("spawn")  # a fork would copy the progress display's thread and locks
    ours, theirs = context.Pipe()
    process = context.Process(target=_work, args=(path, folder, seconds, theirs), daemon=True)
    process.start()
    theirs.close()
    return _Worker(process, ours)


def _hand(worker: _Worker, index: int | None, functions: Sequence[Function], seconds: float) -> None:
    worker.at = index
    if index is not None:
        worker.deadline = time.monotonic() + seconds + 4 * _GRACE
        worker.pipe.send(functions[index])


def _ask(worker: _Worker, functions: Sequence[Function]) -> SurveyOutcome | None:
    """Returns what the worker says of its function; or that it died or hangs over it. None: nothing yet."""
    if worker.at is None:
        return None
    function = functions[worker.at]
    try:
        if worker.pipe.poll():
            answer: SurveyOutcome = worker.pipe.recv()
            return answer
    except (EOFError, OSError):
        worker.process.join(_GRACE)
        return _failed(function, f"the lifter died (exit status {worker.process.exitcode})")
    if time.monotonic() > worker.deadline:
        worker.process.kill()
        worker.process.join()
        return _failed(function, "time limit (the lifter had to be killed)")
    return None


def _failed(function: Function, why: str) -> SurveyOutcome:
    stop = LiftStop(function.start, "whole function", why)
    return SurveyOutcome(function.name, function.start, function.size, False, False, stop)


def _work(path: Path, folder: Path, seconds: float, pipe: Connection) -> None:
    """A worker process: functions in, outcomes out."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent is told, and kills us
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    with tempfile.TemporaryDirectory(dir=folder) as own:
        binary = ElfBinary.open_module(path)
        while True:
            try:
                function: Function = pipe.recv()
            except EOFError:
                return
            pipe.send(examine_within(binary, function, Path(own), seconds))


def examine_within(binary: ElfBinary, function: Function, folder: Path, seconds: float) -> SurveyOutcome:
    """:func:`examine` with a time limit; a failure of the lifter itself is an outcome too. Main thread only."""
    try:
        with time_limit(seconds):
            return examine(binary, function, folder)
    except TooLong:
        return _failed(function, f"time limit ({seconds:g} s)")
    except Exception as error:  # of the lifter on code nobody has seen before: to be reported, not to end the survey
        return _failed(function, f"failure of the lifter itself: {type(error).__name__}: {str(error)[:120]}")


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raises :class:`TooLong` in the body when it takes longer than ``seconds`` (by SIGALRM: main thread only)."""

    def stop(_number: int, _frame: FrameType | None) -> None:
        raise TooLong

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
