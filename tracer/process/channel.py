"""The wire between the controller and the agent: a folder on tmpfs, command files, reply files.

``folder/CHANNEL.cmd`` appears by rename, the process that listens to CHANNEL consumes it and answers with
``CHANNEL.res``. No descriptor stays open in the process. Layouts mirror ``tracer/agent/agent.h``.
"""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import os
import shutil
import struct
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

from layout_advise.errors import SnapshotError
from layout_advise.tracer.offspring.processes import start_time
from layout_advise.tracer.process.disk_space import memory_folder
from layout_advise.tracer.process.patching import MAX_EXITS, Entry, Patch, plan_exit, plan_patch

MAGIC = 0x3167617561796C61
MAX_TIMED = 16384
APART = (0x5A0000000000, 0x5B0000000000)
"""Where the agent allocates memory (``tracer/agent/sys.h``)."""
_HEAD = struct.Struct("<6Q")
_REPLY = struct.Struct("<QQqQ")
_CONFIG = struct.Struct("<8Q4IQ32s128s")
_EXIT = struct.Struct("<Q4I32s64s")
_FIX = struct.Struct("<IIQ")
_STATUS = struct.Struct("<4Qqq10Q256s")
_SAMPLE = struct.Struct("<7Q")
_FURTHER = struct.Struct("<3Q4I32s128s")
MAX_FURTHER = 7
"""So many regions beside the first can be patched in one run."""
_STATUS_BYTES = _STATUS.size + MAX_TIMED * _SAMPLE.size + 8 + MAX_FURTHER * 24
_PREFIX = "layout-advise-"
_HELD_NS = int(time.time()) * 1_000_000_000
"""The time of day that every program finds at its first look at the clock: programs seed their generators with it."""


class Verb(IntEnum):
    """Commands."""

    PING = 1
    REGISTERS = 2
    BLOCKS = 3
    FORK = 4
    TRACE = 5
    LOAD = 6
    RUN = 7
    PREPARE = 8
    BLOCK = 9
    MOVE = 10
    REAP = 11
    INFO = 12
    CONVERT = 13
    TEAM = 14
    TRACE_TEAM = 15
    BATCH = 16
    THREADS = 17
    MEMBERS = 18
    MAP = 19
    SETTLE = 20
    PUT = 21
    PUT_NS = 22


class Mode(IntEnum):
    """The agent's purpose in one run."""

    SAMPLE = 1
    PROBE = 2
    PARK = 3
    RECORD = 4
    LIVE = 5
    ORDER = 6


class State(IntEnum):
    """How far the agent has come."""

    ABSENT = 0
    LOADED = 1
    PATCHED = 2
    PARKED = 3
    STOPPED = 4


@dataclass(frozen=True, slots=True)
class Status:
    """The agent's status file. ``calls`` of the hotspot so far (of a loop in chunks: passages of its head); ``timed``
    samples are valid; ``empty``: ticks of a timed call that does nothing, or of a loop in chunks the ps of counting an
    iteration."""

    state: State
    pid: int
    load_base: int
    calls: int
    nested: int
    threads: int
    timed: int
    entry: int
    ns_per_tick: float | None
    empty: int
    error: str

    def calls_of(self, entry: Entry) -> int:
        """The calls so far of what is entered at ``entry``: of a loop in chunks the whole ones."""
        return self.calls // entry.chunk if entry.chunk else self.calls


@dataclass(frozen=True, slots=True)
class Orders:
    """The agent's task: it parks at call ``first`` (from 1) of the hotspot at ``entry``, or times or records ``timed`` calls
    from there on, or logs the order of ``timed`` entries of it and of what its exits are then: other regions; it ends the
    program after ``max_calls`` (0: never). ``quick``: only the time stamp counter is read.
    ``calm``: ticks of the canary and ns of patience. ``interval_ns`` is the sampler's."""

    mode: Mode
    entry: Entry | None = None
    first: int = 1
    timed: int = 0
    max_calls: int = 0
    interval_ns: int = 0
    quick: bool = False
    calm: tuple[int, int] = (0, 0)


ROOM = 4 << 20
"""Bytes that a run's folder may need: orders, samples, times of calls."""


def _tmpfs() -> Path:
    return memory_folder(ROOM) or Path(tempfile.gettempdir())


def _remove_stale(parent: Path) -> None:
    """Folders of controllers that were killed: nobody holds their lock. It is taken before the orders are written, so a
    young folder without orders may be about to be locked. A folder without a lock was being made, or removed while
    something was still written there: its name tells whose it is. Those of other users cannot be looked into."""
    for folder in parent.glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):
            if not (folder / "alive").exists():
                if is_left_behind(folder):
                    shutil.rmtree(folder, ignore_errors=True)
                continue
            young = time.time() - folder.stat().st_mtime < 60
            if (young and not (folder / "config").exists()) or folder.stat().st_uid != os.getuid():
                continue
            with open(folder / "alive", "rb") as handle:
                fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)


def is_left_behind(folder: Path) -> bool:
    """Returns whether the folder is named after a process that is gone."""
    parts = folder.name.split("-")
    named = len(parts) >= 5 and parts[2].isdigit() and parts[3].isdigit()
    return named and start_time(int(parts[2])) != parts[3]


class RunFolder:
    """The folder of one run of the program. ``close`` removes it, which also ends every process that listens in it."""

    def __init__(self) -> None:
        parent = _tmpfs()
        for place in {parent, Path("/dev/shm"), Path(tempfile.gettempdir())}:  # a killed one may have had another choice
            _remove_stale(place)
        self.path = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-{start_time(os.getpid())}-", dir=parent))
        self._alive = open(self.path / "alive", "wb")  # noqa: SIM115 - held open: the lock is the sign of life
        fcntl.flock(self._alive, fcntl.LOCK_EX)
        self._numbers = itertools.count(1)
        self.begun = 0.0
        """When the program was started, by the monotonic clock: it may have ended before anybody waits for it."""

    def fresh_name(self, prefix: str) -> str:
        """A channel name not used before in this folder."""
        return f"{prefix}{next(self._numbers)}"

    def configure(self, orders: Orders, preload: str) -> None:
        """Write the agent's orders and an empty status file. ``preload`` is what the user has preloaded."""
        entry = orders.entry
        patch = plan_patch(entry) if entry else Patch(0, b"", (), b"", False)
        outlined = entry.outlined if entry else None
        data = _CONFIG.pack(
            MAGIC, orders.mode, os.getpid(), entry.address if entry else 0, orders.first, orders.timed, orders.max_calls,
            orders.interval_ns, patch.size, len(patch.blob), patch.int3, len(patch.fixes), orders.quick, patch.original,
            patch.blob,
        )  # fmt: skip
        data += _fixes(patch, 8)
        data += os.fsencode(entry.path.resolve() if entry else "").ljust(4096, b"\0")
        data += os.fsencode(preload).ljust(4096, b"\0")
        data += struct.pack("<Q", outlined.address if outlined else 0)
        data += os.fsencode(outlined.path.resolve() if outlined else "").ljust(4096, b"\0")
        data += _exits(entry.exits if entry else ())
        chunk = entry.chunk if entry else 0
        data += struct.pack("<5Q", *orders.calm, outlined.register if outlined else 0, _HELD_NS, chunk)
        (self.path / "config").write_bytes(data)
        (self.path / "status").write_bytes(bytes(_STATUS_BYTES))

    def status(self) -> Status:
        """The status now."""
        data = (self.path / "status").read_bytes()
        magic, state, pid, base, counter, armed, nested, threads, timed, entry, *clocks, empty, _, error = (
            _STATUS.unpack_from(data)
        )
        wall, ticks = (clocks[k + 2] - clocks[k] for k in (0, 1))
        rate = wall / ticks if clocks[2] and ticks > 0 else None
        known = State(state) if magic == MAGIC else State.ABSENT
        text = error.split(b"\0")[0].decode(errors="replace")
        return Status(known, pid, base, armed - counter, nested, threads, timed, entry, rate, empty, text)

    def samples(self, count: int) -> list[tuple[int, ...]]:
        """The fields of :class:`~layout_advise.tracer.process.stopped_program.Sample` of the first ``count`` timed calls."""
        data = (self.path / "status").read_bytes()
        return [_SAMPLE.unpack_from(data, _STATUS.size + i * _SAMPLE.size) for i in range(count)]

    def close(self) -> None:
        """Remove the folder; idempotent."""
        shutil.rmtree(self.path, ignore_errors=True)
        self._alive.close()


def further_region(entry: Entry, first: int, quick: bool) -> bytes:
    """A further region of a trial in the running program, whose calls from ``first`` on are in it, as a part of the file
    ``further``. Raises :class:`SnapshotError` where there is no room for a jump."""
    patch = plan_patch(entry)
    if patch.int3 or entry.outlined is not None:
        name = entry.symbol or hex(entry.address)
        raise SnapshotError(f"cannot stop at {name} beside other regions", "its first instructions cannot be moved")
    sizes = (patch.size, len(patch.blob), len(patch.fixes), 0)
    data = _FURTHER.pack(entry.address, first, quick, *sizes, patch.original, patch.blob)
    return data + _fixes(patch, 8) + _exits(entry.exits)


def _fixes(patch: Patch, room: int) -> bytes:
    return b"".join(_FIX.pack(fix.at, fix.end, fix.target) for fix in patch.fixes).ljust(room * _FIX.size, b"\0")


def _exits(places: Sequence[Entry]) -> bytes:
    """The part of the orders that tells where a loop is left."""
    data = struct.pack("<Q", len(places))
    for place in places:
        plan = plan_exit(place)
        data += _EXIT.pack(place.address, plan.size, len(plan.blob), len(plan.fixes), 0, plan.original, plan.blob)
        data += _fixes(plan, 4)
    return data.ljust(8 + MAX_EXITS * (_EXIT.size + 4 * _FIX.size), b"\0")


class Channel:
    """One listener in the folder. Not for use by two threads at once."""

    def __init__(self, folder: RunFolder, name: str) -> None:
        self.folder = folder
        self.name = name
        self._sequence = time.monotonic_ns()  # never repeats, so an answer to an older command is told apart

    def call(self, verb: Verb, words: Sequence[int], path: str, timeout: float, dead: Callable[[], str | None]) -> bytes:
        """Send a command and wait for its answer.

        ``dead`` tells how the process ended (or None while it lives). Raises :class:`SnapshotError` when it died, answered
        with an error, or did not answer within ``timeout`` seconds (TimeoutError is turned into one by the caller).
        """
        self._sequence += 1
        name = os.fsencode(path)
        data = _HEAD.pack(MAGIC, self._sequence, verb, int(timeout * 1e9), len(words), len(name))
        data += struct.pack(f"<{len(words)}Q", *words) + name + b"\0"
        draft, reply = self.folder.path / f"{self.name}.new", self.folder.path / f"{self.name}.res"
        try:
            draft.write_bytes(data)
            draft.rename(self.folder.path / f"{self.name}.cmd")
        except OSError as error:
            raise SnapshotError("cannot command the program", str(error)) from error
        return self._wait(reply, timeout, dead)

    def _wait(self, reply: Path, timeout: float, dead: Callable[[], str | None]) -> bytes:
        begun, pause = time.monotonic(), 5e-5
        while True:
            ended = dead()  # before the look at the file: an answer given just before the end counts
            with contextlib.suppress(FileNotFoundError):
                data = reply.read_bytes()
                reply.unlink()
                if len(data) < _REPLY.size:
                    raise SnapshotError("the program's answer is cut", f"is the disk of {self.folder.path} full?")
                magic, sequence, status, size = _REPLY.unpack_from(data)
                if magic == MAGIC and sequence == self._sequence:
                    body = data[_REPLY.size : _REPLY.size + size]
                    if status:
                        raise SnapshotError("the program could not do it", body.decode(errors="replace"))
                    return body
            if ended is not None:
                raise SnapshotError("the program died", ended)
            waited = time.monotonic() - begun
            if waited > timeout:
                raise TimeoutError
            time.sleep(pause)
            pause = min(pause * 1.3, max(2e-3, waited / 20), 2e-2)  # who waits long looks seldom: the program is being timed
