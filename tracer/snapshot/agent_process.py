"""A program stopped at the entry of its hotspot, commanded through the agent in it.

:func:`layout_advise.tracer.snapshot.park.park` starts one; :meth:`AgentProcess.fork` copies it; :meth:`AgentProcess.attach`
adopts one that CRIU restored. All of them implement :class:`layout_advise.tracer.process.stopped_program.StoppedProgram`.
"""

from __future__ import annotations

import contextlib
import os
import signal
import struct
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Protocol, Self

from layout_advise.errors import HungError, SnapshotError
from layout_advise.tracer.process.block_table import read_blocks
from layout_advise.tracer.process.channel import Channel, RunFolder, Verb
from layout_advise.tracer.process.procfs import how_it_ended, outer_pid, read_mappings, read_memory, thread_count
from layout_advise.tracer.process.seized import ParkedState
from layout_advise.tracer.process.stopped_program import (
    AT_ONCE,
    MODES,
    Calm,
    Clock,
    CloneImage,
    Mode,
    Range,
    RunResult,
    Sample,
    TeamMember,
)
from layout_advise.tracer.snapshot.recorded_calls import RETURNED, Calls
from layout_advise.tracer.trace import trace
from layout_advise.tracer.trace.trace import Allocation, Registers

_REGISTERS = struct.Struct("<16QQQQII2048s")
_RUN_TAIL = struct.Struct("<6Q")
XSAVE_BYTES = 4096
BLOCK_BYTES = 32


def _registers(data: bytes) -> Registers:
    *gpr, rip, rflags, fs_base, mxcsr, _, vectors = _REGISTERS.unpack_from(data)
    lanes = tuple(vectors[64 * n : 64 * n + 64] for n in range(32))
    return Registers(tuple(gpr), rip, rflags, mxcsr, fs_base, lanes)


def _words(calm: Calm) -> tuple[int, ...]:
    return (calm.ticks, calm.memory, calm.patience_ns, calm.enough, calm.look)


def _flat(ranges: Sequence[Range]) -> list[int]:
    return [word for item in ranges for word in (item.start, item.end)]


class Copies(Protocol):
    """Where whole copies of a parked process come from: :class:`layout_advise.tracer.snapshot.snapshots.CriuSnapshots`."""

    def restore(self) -> AgentProcess:
        """A fresh copy, stopped at the same point."""
        ...

    def close(self) -> None:
        """End all copies; idempotent."""
        ...


class AgentProcess:
    """See :class:`~layout_advise.tracer.process.stopped_program.StoppedProgram`. ``timeout`` (seconds) holds for each
    command. Several threads may command one process; it does one thing after the other."""

    def __init__(
        self, folder: RunFolder, channel: str, pid: int, *, on_close: Callable[[], None], timeout: float,
        ended: Callable[[], str | None] | None = None,
    ) -> None:  # fmt: skip
        self.folder = folder
        self.timeout = timeout
        self._channel = Channel(folder, channel)
        self._pid = pid
        self._on_close = on_close
        self._ended = ended or (lambda: how_it_ended(pid))
        self._children: list[AgentProcess] = []
        self._copies: Copies | None = None
        self._registers: Registers | None = None
        self._allocations: tuple[Allocation, ...] | None = None
        self._info: tuple[int, ...] | None = None
        self._born: tuple[trace.Mapping, ...] | None = None
        self._closed = False
        self._lock = threading.Lock()
        self._batch = 0
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

    def _inherit(self, other: AgentProcess) -> None:
        self._registers, self._allocations, self._info = other._registers, other._allocations, other._info
        self._born = other.mappings_at_park()
        self._batch = other._batch

    def _call(self, verb: Verb, words: Sequence[int] = (), path: str = "") -> bytes:
        if self._closed:
            raise SnapshotError("the program is closed already")
        try:
            with self._lock:
                return self._channel.call(verb, words, path, self.timeout, self._ended)
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._pid, signal.SIGKILL)
            what = f"the program hung in command {verb.name.lower()}"
            raise HungError(what, f"no answer within {self.timeout:g} s") from None

    @property
    def pid(self) -> int:
        """Process id as seen from here."""
        return self._pid

    @property
    def load_base(self) -> int:
        """What to add to an address of the hotspot's ELF file."""
        return self._words()[0]

    def _words(self) -> tuple[int, ...]:
        if self._info is None:
            self._info = struct.unpack("<18Q", self._call(Verb.INFO))
        return self._info

    def own_ranges(self) -> tuple[Range, ...]:
        """Memory of the agent: stack, block table, status, its own code and data, the stubs of a loop's exits, the stacks of
        allocations."""
        words = self._words()
        return tuple(Range(words[i], words[i] + words[i + 1]) for i in (2, 4, 6, 8, 10, 12))

    def parked_state(self) -> ParkedState:
        """What lets the parked thread go on under ptrace (:mod:`layout_advise.tracer.process.seized`), in this very
        process."""
        thread, signals, vectors, components = self._words()[14:]
        return ParkedState(thread, signals, self.read(vectors, XSAVE_BYTES), components)

    def keep_table(self) -> tuple[int, int]:
        """Have the table of heap blocks kept up to date when the program goes on; its address and number of slots."""
        path = self.folder.path / self.folder.fresh_name("blocks")
        self._call(Verb.BLOCKS, (1,), str(path))
        path.unlink()
        return self._words()[4], self._words()[5] // BLOCK_BYTES

    def mappings_at_park(self) -> tuple[trace.Mapping, ...]:
        """The mappings before anything was loaded or allocated for a mock-up: what can be the program's own."""
        if self._born is None:
            self._born = self.mappings()
        return self._born

    def ping(self) -> None:
        """Returns once the process obeys."""
        self._call(Verb.PING)

    def move(self) -> None:
        """Listen on another channel from now on (the old name is free for restored copies)."""
        name = self.folder.fresh_name("m")
        self._call(Verb.MOVE, (), name)
        self._channel = Channel(self.folder, name)

    def registers(self) -> Registers:
        """The registers at the hotspot's entry."""
        if self._registers is None:
            self._registers = _registers(self._call(Verb.REGISTERS))
        return self._registers

    def mappings(self) -> tuple[trace.Mapping, ...]:
        """/proc/PID/maps now."""
        return read_mappings(self._pid)

    def allocations(self) -> tuple[Allocation, ...]:
        """The heap blocks alive at the entry, ascending by address."""
        if self._allocations is None:
            self._allocations = self.live_blocks()
        return self._allocations

    def live_blocks(self) -> tuple[Allocation, ...]:
        """The heap blocks alive now: after :meth:`trace`, those at the end of the call."""
        path = self.folder.path / self.folder.fresh_name("blocks")
        try:
            (slots,) = struct.unpack("<Q", self._call(Verb.BLOCKS, (), str(path)))
            return read_blocks(path, slots)
        finally:
            path.unlink(missing_ok=True)

    def read(self, address: int, size: int) -> bytes:
        """Memory of the process."""
        return read_memory(self._pid, address, size)

    @property
    def copies(self) -> Copies | None:
        """What :meth:`fork` takes its copies from; None: the kernel."""
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

    def batch(self, calls: Calls) -> None:
        """From here on a call, of this process and of all copies made of it, is all of ``calls``, one after the other, with
        memory as the calls themselves leave it. They must have the same rsp, and the first must be the parked call."""
        path = self.folder.path / self.folder.fresh_name("batch")
        path.write_bytes(calls.data)
        try:
            self._call(Verb.BATCH, (len(calls),), str(path))
        finally:
            path.unlink()
        self._batch = len(calls)

    def load(self, shared_object: Path) -> int:
        """dlopen a mock-up; returns its variant number (from 1; 0 is the original)."""
        (number,) = struct.unpack("<Q", self._call(Verb.LOAD, (), str(shared_object.resolve())))
        return int(number)

    def run(
        self, variant: int, *, forbidden: Sequence[Range] = (), records: tuple[Path, int] | None = None
    ) -> RunResult:  # fmt: skip
        """See the protocol. The original's registers are those at its return."""
        path, capacity = (str(records[0].resolve()), records[1]) if records else ("", 0)
        data = self._call(Verb.RUN, (variant, capacity, len(forbidden), *_flat(forbidden)), path)
        count, mismatches, site, old, new, remapped = _RUN_TAIL.unpack_from(data, _REGISTERS.size)
        first = (site, old, new) if mismatches else None
        returned = data[_REGISTERS.size + _RUN_TAIL.size :]
        each = tuple(returned[k : k + RETURNED] for k in range(0, len(returned), RETURNED))
        return RunResult(_registers(data), count, mismatches, first, remapped, each)

    def prepare(
        self, variant: int, written: Sequence[Range], original: Sequence[Range] = (), *, like_original: bool = False
    ) -> int:
        """See the protocol; once per variant and process."""
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
