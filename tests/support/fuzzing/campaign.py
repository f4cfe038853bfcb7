"""Many inputs for one reader, in processes that have little memory and are ended where they hang."""

from __future__ import annotations

import multiprocessing
import resource
import signal
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from random import Random
from types import FrameType

from layout_advise.errors import LayoutAdviseError
from tests.support.campaigns.ledger import ROOT, Ledger, commit_of
from tests.support.fuzzing.readers import READERS
from tests.support.fuzzing.samples import Samples, samples

MEMORY = 1 << 30
"""Bytes of address space that a reader may take beyond what its process has when it starts."""
SECONDS = 10.0
"""Seconds of the processor that an input may take; a process that says nothing for eight times as long is killed."""
BATCH = 30
TRIED = ("layout_advise", "layoutalgebra", "mockup", "reports", "tracer", "tests/support/fuzzing")
"""What the commit of a result is of."""


class HangError(Exception):
    """An input took too long."""


@dataclass(frozen=True, slots=True)
class Fault:
    """An input that ended otherwise than it may: ``input`` is its number, ``how`` the last lines of the traceback."""

    reader: str
    input: int
    how: str

    @property
    def place(self) -> str:
        """What faults of one cause have in common: the error's type, and where it was raised."""
        lines = [line.strip() for line in self.how.splitlines()]
        files = [line for line in lines if line.startswith("File ")]
        where = files[-1].replace(f"{ROOT}/", "") if files else ""
        return f"{self.reader}: {lines[-1].split(':')[0] if lines else ''} {where}"


@dataclass(frozen=True, slots=True)
class Batch:
    """What became of the inputs from ``first`` on: how many were read, how many refused in one line."""

    reader: str
    first: int
    done: int
    refused: int
    faults: tuple[Fault, ...]


def fed(name: str, number: int, known: Samples, seed: str) -> str | None:
    """Feed one input. ``None``: it was read; an empty text: it was refused; else how it failed."""
    try:
        READERS[name][0](Random(f"{seed} {name} {number}"), known)
    except LayoutAdviseError as error:
        return "" if "\n" not in error.line() else f"more than one line: {error.line()!r}"
    except HangError:
        return traceback.format_exc(limit=-8)
    except (Exception, SystemExit) as error:
        told = "".join(traceback.format_exception(error, limit=-6, chain=False))
        return told or repr(error)
    return None


def _alarm(number: int, frame: FrameType | None) -> None:
    raise HangError(f"more than {SECONDS:g} s")


def limited() -> None:
    """Give this process little memory from now on, and let an alarm raise :class:`HangError`."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + MEMORY, resource.RLIM_INFINITY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGPROF, _alarm)


def _work(name: str, first: int, count: int, folder: Path, seed: str, out: Connection) -> None:
    known = samples(folder)
    limited()
    refused, faults = 0, []
    for number in range(first, first + count):
        out.send(number)
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        how = fed(name, number, known, seed)
        signal.setitimer(signal.ITIMER_PROF, 0)
        refused += how == ""
        if how:
            faults.append(Fault(name, number, how))
    out.send(Batch(name, first, count, refused, tuple(faults)))


def _batch(name: str, first: int, count: int, folder: Path, seed: str) -> Batch:
    """One process's inputs. Where it dies or has to be killed, the input at which it did is a fault, and no more are fed."""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(name, first, count, folder, seed, theirs))
    process.start()
    theirs.close()
    at = first
    try:
        while ours.poll(8 * SECONDS + 10):
            told = ours.recv()
            if isinstance(told, Batch):
                return told
            at = told
        how = f"more than {8 * SECONDS:g} s, and no alarm was heeded"
    except EOFError:
        process.join()
        how = f"the process ended ({process.exitcode})"
    finally:
        _ended(process)
    return Batch(name, first, at - first + 1, 0, (Fault(name, at, how),))


def _ended(process: BaseProcess) -> None:
    process.join(1)
    if process.is_alive():
        process.kill()
        process.join()


def campaign(
    inputs: int, seed: str, only: tuple[str, ...] = (), seconds: float | None = None, kept: Ledger | None = None
) -> Iterator[Batch]:
    """Batches of about ``inputs`` inputs over all readers, or for so many seconds; the readers take turns. What ``kept`` has
    of the seed is not done again, and what is done goes into it."""
    names = [name for name in READERS if not only or name in only]
    parts = sum(READERS[name][1] for name in names)
    begun, commit = time.monotonic(), commit_of(*TRIED)
    kept = kept or Ledger(None)
    with tempfile.TemporaryDirectory(prefix="layout-advise-fuzz-") as work:
        samples(Path(work))
        done = {name: kept.next_turn(name, seed) for name in names}
        while left := [n for n in names if done[n] < -(-inputs * READERS[n][1] // parts)]:
            for name in left:
                if seconds is not None and time.monotonic() - begun > seconds:
                    return
                wanted = -(-inputs * READERS[name][1] // parts)
                found = _batch(name, done[name], min(BATCH * READERS[name][1], wanted - done[name]), Path(work), seed)
                done[name] += found.done
                entry = kept.entry(name, seed, commit)
                entry.inputs += found.done
                entry.refused["one line"] += found.refused
                entry.found += [f"{fault.input}: {fault.place}" for fault in found.faults]
                kept.done(entry, found.first, found.done)
                yield found


def told(batches: Iterator[Batch], say: Callable[[str], None]) -> int:
    """Say each new place of a fault at once, and at the end the counts; returns the number of faults."""
    counts: dict[str, list[int]] = {}
    places: set[str] = set()
    for batch in batches:
        row = counts.setdefault(batch.reader, [0, 0, 0])
        row[0] += batch.done
        row[1] += batch.refused
        row[2] += len(batch.faults)
        for fault in batch.faults:
            if fault.place not in places:
                places.add(fault.place)
                say(f"--- {fault.reader} {fault.input}\n{fault.how}")
    for name, (done, refused, failed) in counts.items():
        say(f"{name:<18} {done:>9,} inputs  {refused:>9,} refused  {failed:>6,} faults")
    total = [sum(row[k] for row in counts.values()) for k in range(3)]
    say(f"{'all':<18} {total[0]:>9,} inputs  {total[1]:>9,} refused  {total[2]:>6,} faults in {len(places)} places")
    return total[2]
