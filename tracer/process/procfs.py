"""A process as /proc shows it: mappings, memory, namespaces, how it ended."""

from __future__ import annotations

import os
from pathlib import Path

from layout_advise.errors import SnapshotError
from layout_advise.tracer.process.launch import describe_end
from layout_advise.tracer.trace.trace import Mapping


def parse_mappings(text: str) -> tuple[Mapping, ...]:
    """The lines of a /proc/PID/maps."""
    found = []
    for line in text.splitlines():
        parts = line.split(None, 5)
        start, _, end = parts[0].partition("-")
        path = parts[5] if len(parts) > 5 else ""
        found.append(Mapping(int(start, 16), int(end, 16), parts[1], int(parts[2], 16), path))
    return tuple(found)


def read_mappings(pid: int) -> tuple[Mapping, ...]:
    """/proc/PID/maps now. Raises :class:`SnapshotError` if the process is gone."""
    try:
        return parse_mappings(Path(f"/proc/{pid}/maps").read_text())
    except OSError as error:
        raise SnapshotError("the program died", str(error)) from error


def read_memory(pid: int, address: int, size: int) -> bytes:
    """``size`` bytes at ``address``; raises :class:`SnapshotError` where they cannot be read in full."""
    pieces = []
    try:
        with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
            while size > 0:
                piece = os.pread(memory.fileno(), min(size, 1 << 30), address)
                if not piece:
                    raise SnapshotError("cannot read the program's memory", f"nothing at {address:#x}")
                pieces.append(piece)
                address, size = address + len(piece), size - len(piece)
    except OSError as error:
        raise SnapshotError("cannot read the program's memory", f"at {address:#x}: {error}") from error
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def write_memory(pid: int, address: int, data: bytes) -> None:
    """Put ``data`` at ``address``, protected or not; raises :class:`SnapshotError` where that cannot be done in full."""
    try:
        with open(f"/proc/{pid}/mem", "r+b", buffering=0) as memory:
            at, left = address, memoryview(data)
            while left:
                done = os.pwrite(memory.fileno(), left[: 1 << 30], at)
                at, left = at + done, left[done:]
    except OSError as error:
        raise SnapshotError("cannot write the program's memory", f"at {address:#x}: {error}") from error


def thread_count(pid: int) -> int:
    """How many threads the process has now; raises :class:`SnapshotError` if it is gone."""
    try:
        return len(os.listdir(f"/proc/{pid}/task"))
    except OSError as error:
        raise SnapshotError("the program died", str(error)) from error


def how_it_ended(pid: int) -> str | None:
    """``killed by SIGSEGV`` for a process that has ended (a zombie too), None while it lives."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return "the process is gone"
    if fields[0] not in "ZX":
        return None
    code = int(fields[49])  # exit_code, as for wait(2); 0 where we may not trace it
    return describe_end(-(code & 0x7F)) if code & 0x7F else describe_end(code >> 8)


def _inner_pids(pid: int) -> list[int]:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("NSpid:"):
            return [int(word) for word in line.split()[1:]]
    return [pid]


def outer_pid(parent: int, inner: int) -> int:
    """The child that ``parent`` knows as ``inner``, as seen from here (``parent`` may live in a PID namespace)."""
    try:
        if os.stat(f"/proc/{parent}/ns/pid").st_ino == os.stat("/proc/self/ns/pid").st_ino:
            return inner
        for task in Path(f"/proc/{parent}/task").iterdir():
            for child in (task / "children").read_text().split():
                if _inner_pids(int(child))[-1] == inner:
                    return int(child)
    except OSError as error:
        raise SnapshotError("cannot find the fork of the program", str(error)) from error
    raise SnapshotError("cannot find the fork of the program", f"no child {inner} of {parent}")
