"""Sampling with Linux perf, where it is installed and allowed; the same result as from the agent's own timer."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping as Environment
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from layout_advise.errors import MachineError, ProgramError
from layout_advise.tracer.offspring.marks import MARK, fresh_mark
from layout_advise.tracer.process.launch import kill_session
from layout_advise.tracer.trace.trace import Mapping

# cpu-clock needs no hardware counters, so it works in virtual machines; :u keeps the kernel out where it is forbidden
_EVENT = "cpu-clock"
_FREQUENCY = "997"  # samples a second
_MMAP = re.compile(
    r"PERF_RECORD_MMAP2? (-?\d+)/\d+: \[(0x[0-9a-f]+)\((0x[0-9a-f]+)\) @ (0x[0-9a-f]+|0)[^\]]*\]: (\S+) (.+)$"
)
_SAMPLE = re.compile(rf"^\s*(\d+)\s+{_EVENT}(?::\w+)?:\s+([0-9a-f]+)")


@dataclass(frozen=True, slots=True)
class Samples:
    """Sampled instruction addresses of one process, what it had mapped, and how it ended (negative: by a signal)."""

    addresses: NDArray[np.uint64]
    mappings: tuple[Mapping, ...]
    exit_status: int


@cache
def perf_available() -> bool:
    """Returns whether ``perf record`` works here (it is installed, and the kernel lets this user sample)."""
    if shutil.which("perf") is None:
        return False
    with tempfile.TemporaryDirectory() as directory:
        command = ["perf", "record", "-q", "-e", _EVENT, "-o", f"{directory}/data", "true"]
        return subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, check=False).returncode == 0


def sample_with_perf(
    command: Sequence[str],
    *,
    stdin: IO[bytes] | int | None = None,
    stdout: IO[bytes] | int | None = None,
    stderr: IO[bytes] | int | None = None,
    env: Environment[str, str] | None = None,
    timeout: float | None = None,
) -> Samples:
    """Run ``command`` to its end under ``perf record`` and return the samples of its busiest process.

    Raises :class:`MachineError` without a working perf, :class:`ProgramError` on a time-out.
    """
    if not perf_available():
        raise MachineError("perf cannot sample here", "it is missing or not allowed", "use the agent's sampler")
    with tempfile.TemporaryDirectory() as directory:
        data = Path(directory) / "data"
        record = ["perf", "record", "-q", "-e", _EVENT, "-F", _FREQUENCY, "-o", str(data), "--", *command]
        try:
            code = _recorded(record, env, timeout, (stdin, stdout, stderr))
        except subprocess.TimeoutExpired:
            why = f"it was still running after {timeout:g} s"
            raise ProgramError(f"{command[0]} did not end", why, "give --timeout more seconds or less input") from None
        script = ["perf", "script", "-i", str(data), "--show-mmap-events", "-F", "pid,ip,event"]
        listing = subprocess.run(script, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    if listing.returncode != 0:
        raise MachineError("perf script failed", listing.stderr.strip()[-200:], "use the agent's sampler")
    addresses, mappings = parse_script(listing.stdout)
    return Samples(addresses, mappings, code)


def _recorded(
    command: Sequence[str],
    env: Environment[str, str] | None,
    timeout: float | None,
    files: tuple[IO[bytes] | int | None, ...],
) -> int:
    """Runs the command to its end; its exit status. What it leaves running is ended."""
    mark = fresh_mark()
    marked = {**(os.environ if env is None else env), MARK: mark}
    stdin, stdout, stderr = files
    process = subprocess.Popen(command, env=marked, stdin=stdin, stdout=stdout, stderr=stderr, start_new_session=True)
    try:
        return process.wait(timeout)
    finally:
        kill_session(process, mark)


def parse_script(listing: str) -> tuple[NDArray[np.uint64], tuple[Mapping, ...]]:
    """Addresses and mappings of the process with most samples, from ``perf script --show-mmap-events -F pid,ip,event``."""
    samples: dict[int, list[int]] = {}
    mappings: dict[int, list[Mapping]] = {}
    for line in listing.splitlines():
        found = _MMAP.search(line)
        if found is not None:
            pid, start, size, offset = (int(g, 0) for g in found.groups()[:4])
            entry = Mapping(start, start + size, found.group(5), offset, found.group(6))
            mappings.setdefault(pid, []).append(entry)
            continue
        found = _SAMPLE.match(line)
        if found is not None:
            samples.setdefault(int(found.group(1)), []).append(int(found.group(2), 16))
    busiest = max(samples, key=lambda pid: len(samples[pid]), default=-1)
    return np.array(samples.get(busiest, []), dtype=np.uint64), tuple(mappings.get(busiest, ()))
