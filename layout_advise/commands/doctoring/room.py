"""Little room: memory, open files, folders that cannot be written, processes that may not be looked into."""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from layout_advise.commands.doctoring.diagnosis import Diagnosis
from layout_advise.errors import MachineError
from layout_advise.tracer.process import ptrace
from layout_advise.tracer.process.agent import agent_path
from layout_advise.tracer.process.build_cache import cache_folder
from layout_advise.tracer.snapshot.criu_install import FILES

LEAST = 1 << 30
"""Bytes of memory below which a run may end for want of them."""


def memory() -> Diagnosis:
    """The least of what the machine, its control groups and `ulimit -v` leave."""
    found = {"free": _available(), **_control_groups()}
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    if soft != resource.RLIM_INFINITY:
        found["ulimit -v"] = soft
    name, least = min(found.items(), key=lambda item: item[1])
    hint = "the records of a call need 8 bytes an access: lower --max-refs or --max-bytes, or give it more"
    return Diagnosis("memory", least >= LEAST, False, f"{least / 2**30:.1f} GiB ({name})", hint)


def _available() -> int:
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return 0


def _control_groups() -> dict[str, int]:
    """The limits of the groups that this process is in, of both versions of them."""
    found: dict[str, int] = {}
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return found
    for line in lines:
        _, kinds, place = line.split(":", 2)
        if kinds and "memory" not in kinds.split(","):
            continue
        top, name = ("memory", "memory.limit_in_bytes") if kinds else ("", "memory.max")
        inside = Path(place.lstrip("/"))
        for folder in (inside, *inside.parents):
            with contextlib.suppress(OSError, ValueError):
                found[f"control group /{folder}".replace("/.", "/")] = int(
                    (Path("/sys/fs/cgroup") / top / folder / name).read_text()
                )
    return found


def open_files() -> Diagnosis:
    """CRIU needs more of them than the rest."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = hard if hard != resource.RLIM_INFINITY else FILES
    hint = f"ulimit -n {FILES}; with fewer, and no right to raise it, snapshots are forks"
    return Diagnosis("open files", most >= FILES, False, f"{soft:,} at once (ulimit -n), {hard:,} at most", hint)


def cache() -> Diagnosis:
    """The agent is compiled at first use and kept there."""
    folder = cache_folder()
    hint = "set LAYOUT_ADVISE_CACHE to a writable folder"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        with contextlib.suppress(MachineError):
            agent_path()
            return Diagnosis("cache", True, True, f"{folder}, which cannot be written and has the agent")
        return Diagnosis("cache", False, True, f"{folder}: {error.strerror}", hint)
    return Diagnosis("cache", True, True, str(folder))


def tracing() -> Diagnosis:
    """Returns whether a child may be looked into: who else uses a structure is seen in no other way."""
    with subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(60)"], stdin=subprocess.DEVNULL) as child:
        refused = ptrace.libc.ptrace(ptrace.SEIZE, child.pid, None, None) != 0
        why = os.strerror(ctypes.get_errno()) if refused else ""
        child.kill()
    scope = Path("/proc/sys/kernel/yama/ptrace_scope")
    told = f", ptrace_scope is {scope.read_text().strip()}" if scope.exists() else ""
    hint = "without it other users of a structure are not seen, and nothing is tried in the running program; allow ptrace()"
    text = f"ptrace: {why}{told}" if refused else f"ptrace works{told}"
    return Diagnosis("tracing", not refused, False, text, f"{hint} (docker: --cap-add=SYS_PTRACE)")
