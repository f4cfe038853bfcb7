"""The client's end of the agent in a stopped program: commands, and what the program is at the hotspot's entry."""

from __future__ import annotations

import contextlib
import os
import signal
import struct
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from layout_advise.errors import HungError, SnapshotError
from layout_advise.tracer.process.channel import APART, Channel, RunFolder, Verb
from layout_advise.tracer.process.procfs import how_it_ended, read_mappings, read_memory
from layout_advise.tracer.process.seized import ParkedState
from layout_advise.tracer.process.stopped_program import Range
from layout_advise.tracer.snapshot.block_table import read_blocks
from layout_advise.tracer.trace import trace
from layout_advise.tracer.trace.trace import Allocation, Registers

REGISTERS = struct.Struct("<16QQQQII2048s")
XSAVE_BYTES = 4096
BLOCK_BYTES = 32


def unpack_registers(data: bytes) -> Registers:
    """The registers at the start of an answer."""
    *gpr, rip, rflags, fs_base, mxcsr, _, vectors = REGISTERS.unpack_from(data)
    lanes = tuple(vectors[64 * n : 64 * n + 64] for n in range(32))
    return Registers(tuple(gpr), rip, rflags, mxcsr, fs_base, lanes)


@dataclass(slots=True)
class Pace:
    """Seconds that the original took when it ran last, in a process or in one of its copies; None: it has not run."""

    original: float | None = None


class AgentClient:
    """Commands one stopped process. ``timeout`` (seconds) holds for each command. Several threads may command it; it does
    one thing after the other."""

    def __init__(
        self, folder: RunFolder, channel: str, pid: int, timeout: float, ended: Callable[[], str | None] | None
    ) -> None:
        self.folder = folder
        self.timeout = timeout
        self._channel = Channel(folder, channel)
        self._pid = pid
        self._ended = ended or (lambda: how_it_ended(pid))
        self._registers: Registers | None = None
        self._allocations: tuple[Allocation, ...] | None = None
        self._info: tuple[int, ...] | None = None
        self._born: tuple[trace.Mapping, ...] | None = None
        self._closed = False
        self._lock = threading.Lock()
        self._batch = 0
        self._pace = Pace()

    def _call(self, verb: Verb, words: Sequence[int] = (), path: str = "", limit: float | None = None) -> bytes:
        """The answer to a command, which may take ``limit`` seconds (None: ``timeout``)."""
        limit = self.timeout if limit is None else limit
        if self._closed:
            raise SnapshotError("the program is closed already")
        try:
            with self._lock:
                return self._channel.call(verb, words, path, limit, self._ended)
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._pid, signal.SIGKILL)
            what = f"the program hung in command {verb.name.lower()}"
            raise HungError(what, f"no answer within {limit:.3g} s") from None

    @property
    def pid(self) -> int:
        """Process id as seen from here."""
        return self._pid

    @property
    def load_base(self) -> int:
        """The difference between run-time addresses and those of the hotspot's ELF file."""
        return self._words()[0]

    def _words(self) -> tuple[int, ...]:
        if self._info is None:
            self._info = struct.unpack("<18Q", self._call(Verb.INFO))
        return self._info

    def own_ranges(self) -> tuple[Range, ...]:
        """Memory of the agent: its own code and data, the stubs of a loop's exits, and what it allocates."""
        words = self._words()
        return (Range(*APART), *(Range(words[i], words[i] + words[i + 1]) for i in (8, 10)))

    def parked_state(self) -> ParkedState:
        """The state with which the parked thread goes on under ptrace (:mod:`layout_advise.tracer.process.seized`), in this
        very process."""
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
            self._registers = unpack_registers(self._call(Verb.REGISTERS))
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

    def _inherit(self, other: AgentClient) -> None:
        self._registers, self._allocations, self._info = other._registers, other._allocations, other._info
        self._born = other.mappings_at_park()
        self._batch, self._pace = other._batch, other._pace
