"""A program stopped at the entry of its hotspot, commanded through the agent in it.

:func:`layout_advise.tracer.snapshot.park.park` starts one; :meth:`AgentProcess.fork` copies it; :meth:`AgentProcess.attach`
adopts one that CRIU restored. All of them implement :class:`layout_advise.tracer.process.stopped_program.StoppedProgram`.
"""

from __future__ import annotations

import contextlib
import os
import signal
import struct
import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Protocol, Self

from layout_advise.errors import SnapshotError
from layout_advise.tracer.process.channel import RunFolder, Verb
from layout_advise.tracer.process.procfs import outer_pid, thread_count
from layout_advise.tracer.process.stopped_program import (
    AT_ONCE,
    MODES,
    POISON,
    Calm,
    Clock,
    CloneImage,
    Mode,
    Range,
    RunResult,
    Sample,
    Strided,
    TeamMember,
)
from layout_advise.tracer.snapshot.agent_client import REGISTERS, AgentClient, unpack_registers
from layout_advise.tracer.snapshot.recorded_calls import RETURNED, Calls
from layout_advise.tracer.trace.trace import Mapping

LEAST_LIMIT, SLOWEST_MOCKUP = 5.0, 100.0
"""Seconds that a mock-up may run at least; a slower one, of so many times the original's time, does not end."""
_RUN_TAIL = struct.Struct("<6Q")


def _words(calm: Calm) -> tuple[int, ...]:
    return (calm.ticks, calm.memory, calm.patience_ns, calm.enough, calm.look)


def _flat(ranges: Sequence[Range]) -> list[int]:
    return [word for item in ranges for word in (item.start, item.end)]


def within(ranges: Sequence[Range], mappings: Sequence[Mapping]) -> list[Range]:
    """The parts of ``ranges`` in ``mappings``, which are ascending."""
    spans: list[list[int]] = []
    for one in mappings:
        if spans and spans[-1][1] == one.start:
            spans[-1][1] = one.end
        else:
            spans.append([one.start, one.end])
    starts = [start for start, _ in spans]
    found: list[Range] = []
    for item in ranges:
        for start, end in spans[max(bisect_right(starts, item.start) - 1, 0) : bisect_left(starts, item.end)]:
            if max(start, item.start) < min(end, item.end):
                found.append(Range(max(start, item.start), min(end, item.end)))
    return found


class Copies(Protocol):
    """A source of whole copies of a parked process: :class:`layout_advise.tracer.snapshot.snapshots.CriuSnapshots`."""

    def restore(self) -> AgentProcess:
        """A fresh copy, stopped at the same point."""
        ...

    def close(self) -> None:
        """End all copies; idempotent."""
        ...


class AgentProcess(AgentClient):
    """See :class:`~layout_advise.tracer.process.stopped_program.StoppedProgram`."""

    def __init__(
        self, folder: RunFolder, channel: str, pid: int, *, on_close: Callable[[], None], timeout: float,
        ended: Callable[[], str | None] | None = None,
    ) -> None:  # fmt: skip
        super().__init__(folder, channel, pid, timeout, ended)
        self._on_close = on_close
        self._children: list[AgentProcess] = []
        self._copies: Copies | None = None
        self.traced_ns: float | None = None
        """Thread-CPU ns of the last traced call, what its page faults cost included."""
        self.others_ran = False
        """See the protocol."""

    @classmethod
    def attach(cls, parked: AgentProcess, pid: int, on_close: Callable[[], None]) -> AgentProcess:
        """A client for a restored copy of ``parked`` (process ``pid`` as seen from here), which listens where ``parked``
        listened at the dump. It gets a channel of its own, so that several restored ones can live at once; the dumped
        process, if it lives on, must have been moved away before (:meth:`move`). ``on_close`` kills it."""
        restored = cls(parked.folder, "0", pid, on_close=on_close, timeout=parked.timeout)
        try:
            restored.move()
        except BaseException:
            on_close()
            raise
        restored._inherit(parked)
        return restored

    @property
    def copies(self) -> Copies | None:
        """The source of the copies of :meth:`fork`; None: the kernel."""
        return self._copies

    def copy_with(self, copies: Copies) -> None:
        """Have :meth:`fork` give restored copies from now on, with all threads; ``copies`` end with this process."""
        self._copies = copies

    def fork(self) -> AgentProcess:
        """A copy-on-write copy, stopped at the same point; it dies with this process. Only the parked thread is in it,
        unless :meth:`copy_with` said where whole copies come from."""
        if self._copies is not None:
            return self._copies.restore()
        name = self.folder.fresh_name("f")
        (inner,) = struct.unpack("<q", self._call(Verb.FORK, (), name))
        pid = outer_pid(self._pid, inner)

        def end() -> None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            with contextlib.suppress(SnapshotError):  # a parent that is dead has been reaped by someone else
                self._call(Verb.REAP, (inner,))

        child = AgentProcess(self.folder, name, pid, on_close=end, timeout=self.timeout)
        child._inherit(self)
        self._children.append(child)
        return child

    def trace(self, image: CloneImage, records: Path, capacity: int) -> tuple[int, bool]:
        """Run the clone once; raw records go to the file ``records`` (tmpfs). Returns (records, truncated)."""
        (self.folder.path / "image").write_bytes(image.code)
        words = (image.address, len(image.code), image.entry, capacity)
        threads = thread_count(self._pid)
        count, full, ns, others_ns = struct.unpack("<4Q", self._call(Verb.TRACE, words, str(records.resolve())))
        self.traced_ns = float(ns)
        self.others_ran = others_ns > 0 or thread_count(self._pid) > threads
        return count, bool(full)

    def team(self) -> int:
        """The most threads that the parallel region can get at whose start the program is parked."""
        (most,) = struct.unpack("<Q", self._call(Verb.TEAM))
        return int(most)

    def threads(self, count: int) -> None:
        """Have the parallel region run with ``count`` threads in this process from now on. Raises :class:`SnapshotError`
        where the program's runtime gives another number."""
        (given,) = struct.unpack("<Q", self._call(Verb.THREADS, (count,)))
        if given != count:
            raise SnapshotError(f"cannot run the region with {count} threads", f"the program's runtime gives {given}")

    def members(self, variant: int, calls: int) -> tuple[float, tuple[float, ...]]:
        """Wall ns of the quickest of ``calls`` runs of the region, and CPU ns that each thread spent in its body meanwhile,
        without the wait for the others at the end. The variant must have been prepared."""
        wall, *own = struct.iter_unpack("<Q", self._call(Verb.MEMBERS, (variant, calls)))
        return float(wall[0]), tuple(float(ns) for (ns,) in own)

    def trace_team(self, images: Sequence[CloneImage], records: Path, capacity: int) -> tuple[tuple[TeamMember, ...], int]:
        """Run the region once, the n-th thread in the n-th clone; its raw records (``capacity`` at most) go to the file
        ``records`` with the suffix ``.n``. Returns what each did, and how many entries of the body were not recorded."""
        for number, image in enumerate(images):
            (self.folder.path / f"image.{number}").write_bytes(image.code)
        words = [word for image in images for word in (image.address, len(image.code), image.entry)]
        data = self._call(Verb.TRACE_TEAM, (len(images), capacity, *words), str(records.resolve()))
        stray, ns = struct.unpack_from("<2Q", data)
        self.traced_ns = float(ns)
        members = [
            TeamMember(bool(e), n, bool(full), rsp, fs, tuple(arguments[:count]))
            for e, n, full, rsp, fs, count, *arguments in struct.iter_unpack("<12Q", data[16:])
        ]
        return tuple(members), stray

    def batch(self, calls: Calls, stack: Sequence[int] = ()) -> None:
        """From here on a call, of this process and of all copies made of it, is all of ``calls``, one after the other, with
        memory as the calls themselves leave it, but for the words of the ``stack`` at these distances from rsp, which are
        each call's own. The first must be the parked call. Calls from different depths of the stack are all made from the
        lowest, where :meth:`registers` has rsp from then on."""
        path = self.folder.path / self.folder.fresh_name("batch")
        path.write_bytes(calls.at_lowest().data)
        try:
            self._call(Verb.BATCH, (len(calls), *stack), str(path))
        finally:
            path.unlink()
        self._batch, self._pace.original, self._registers = len(calls), None, None

    def map_later(self, ranges: Sequence[Range]) -> None:
        """Memory that the program gets between the calls of the batch: there from now on, in this process and in all copies
        made of it."""
        if not ranges:
            return
        known = self.mappings_at_park()
        self._call(Verb.MAP, _flat(ranges))
        later = [Mapping(r.start, r.end, "rw-p", 0, "") for r in ranges]
        self._born = tuple(sorted((*known, *later), key=lambda m: m.start))

    def settle(self, records: Path, most: int) -> int:
        """Run the batch with what was recorded between its calls put into memory after each; the file ``records`` gets how
        many words were others after each call, and these (at most ``most``), whose number is returned. This process is of
        no use afterwards."""
        (found,) = struct.unpack("<Q", self._call(Verb.SETTLE, (most,), str(records)))
        return int(found)

    def put(self, counts: bytes, puts: bytes) -> None:
        """From here on the words ``puts`` (address, what of it is kept, value) are put into memory between the calls of the
        batch, ``counts`` after each; in a mock-up where its layout has them."""
        path = self.folder.path / self.folder.fresh_name("puts")
        path.write_bytes(counts + puts)
        try:
            self._call(Verb.PUT, (len(counts) // 8, len(puts) // 24), str(path))
        finally:
            path.unlink()

    def put_back(self, variant: int) -> float:
        """See the protocol."""
        (ns,) = struct.unpack("<Q", self._call(Verb.PUT_NS, (variant,)))
        return float(ns)

    def unbatch(self) -> None:
        """From here on a call is one again, that at which the process is stopped."""
        self._call(Verb.BATCH, (0,))
        self._batch, self._pace.original, self._registers = 0, None, None

    @property
    def _limit(self) -> float | None:
        """Seconds that a mock-up may run; None: no other than for all commands."""
        original = self._pace.original
        return None if original is None else min(self.timeout, max(LEAST_LIMIT, SLOWEST_MOCKUP * original))

    def load(self, shared_object: Path) -> int:
        """dlopen a mock-up; returns its variant number (from 1; 0 is the original)."""
        (number,) = struct.unpack("<Q", self._call(Verb.LOAD, (), str(shared_object.resolve())))
        return int(number)

    def run(
        self,
        variant: int,
        *,
        forbidden: Sequence[Range | Strided] = (),
        records: tuple[Path, int] | None = None,
        poison: int = POISON,
    ) -> RunResult:
        """See the protocol. The original's registers are those at its return. Where the original has run, in this process
        or in one of its family, a mock-up has ``SLOWEST_MOCKUP`` times as long, at least ``LEAST_LIMIT`` seconds."""
        path, capacity = (str(records[0].resolve()), records[1]) if records else ("", 0)
        whole = [item for item in forbidden if isinstance(item, Range)]
        fields = [item for item in forbidden if isinstance(item, Strided)]
        strided = [word for one in fields for word in (one.start, one.end, one.stride, one.bytes)]
        words = (variant, capacity, poison, len(whole), *_flat(whole), len(fields), *strided)
        begun = time.monotonic()
        data = self._call(Verb.RUN, words, path, self._limit if variant else None)
        if not variant:
            self._pace.original = time.monotonic() - begun
        count, mismatches, site, old, new, remapped = _RUN_TAIL.unpack_from(data, REGISTERS.size)
        first = (site, old, new) if mismatches else None
        returned = data[REGISTERS.size + _RUN_TAIL.size :]
        each = tuple(returned[k : k + RETURNED] for k in range(0, len(returned), RETURNED))
        return RunResult(unpack_registers(data), count, mismatches, first, remapped, each)

    def prepare(
        self, variant: int, written: Sequence[Range], original: Sequence[Range] = (), *, like_original: bool = False
    ) -> int:
        """See the protocol; once per variant and process. Memory that the program gets in the call is left out."""
        written, original = (within(ranges, self.mappings_at_park()) for ranges in (written, original))
        words = (variant, like_original, len(written), len(original), *_flat(written), *_flat(original))
        (lines,) = struct.unpack("<Q", self._call(Verb.PREPARE, words))
        return int(lines)

    def block(
        self,
        variant: int,
        calls: int,
        mode: Mode = "steady",
        *,
        converted: bool = False,
        calm: Calm = AT_ONCE,
        settle: tuple[int, Clock] | None = None,
    ) -> tuple[tuple[Sample, ...], Calm]:
        """See the protocol; at most 4096 calls."""
        most, clock = settle or (0, "wall")
        words = (variant, calls, MODES.index(mode), converted, *_words(calm), most, clock == "wall")
        data = self._call(Verb.BLOCK, words)
        (left,) = struct.unpack_from("<Q", data)
        return tuple(Sample(*one) for one in struct.iter_unpack("<7Q", data[8:])), replace(calm, patience_ns=left)

    def convert(self, variant: int, times: int = 3) -> tuple[tuple[float, float], ...]:
        """See the protocol; at most 64 times."""
        data = self._call(Verb.CONVERT, (variant, times))
        return tuple((float(into), float(out)) for into, out in struct.iter_unpack("<2Q", data))

    def close_forks(self) -> None:
        """See the protocol."""
        for child in list(self._children):
            child.close()

    def close(self) -> None:
        """Kill it and everything forked from it; idempotent."""
        if self._closed:
            return
        self.close_forks()
        if self._copies is not None:
            self._copies.close()
        self._closed = True
        self._on_close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
