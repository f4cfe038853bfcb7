"""Snapshots of a parked program by CRIU: one dump, many restores, each a fresh process with the same addresses."""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import shutil
import signal
import struct
import subprocess
import time
from pathlib import Path
from typing import Self

from layout_advise.errors import SnapshotError
from layout_advise.tracer.process.launch import describe_end
from layout_advise.tracer.snapshot.criu_install import Criu, find_criu, with_files
from layout_advise.tracer.snapshot.dump_folder import make_dump_folder, remove_stale_dumps, resident_bytes
from layout_advise.tracer.snapshot.open_files import GrownFiles, written_files
from layout_advise.tracer.snapshot.pages.huge_pages import collapse, huge_ranges

__all__ = ["Criu", "CriuDump", "Restored", "find_criu"]

_HINT = "use --snapshot fork"

# Connections cannot be restored: a computation does not need them. --network-lock skip: no firewall rules for that.
_DUMP_OPTIONS = (
    "--tcp-close",
    "--network-lock",
    "skip",
    "--manage-cgroups=ignore",
    "--ghost-limit",
    "1073741824",
    "--file-locks",
)
_RESTORE_OPTIONS = ("--tcp-close", "--manage-cgroups=ignore", "--file-locks")

# Told by CRIU at every stage; only after the last one may the process be spoken to: until then CRIU traces it.
_ACTION_SCRIPT = '#!/bin/sh\n[ "$CRTOOLS_SCRIPT_ACTION" != post-resume ] || : > "$LAYOUT_ADVISE_RESUMED"\n'

_PIDFD_GET_INFO = 0xC040FF0B  # Linux 6.13; the way of a process that is not one's child, 6.15
_PIDFD_INFO_EXIT = 1 << 3


class Restored:
    """A restored process: ``pid`` as seen from here. It lives in a PID namespace that dies with :meth:`close`, and with this
    process (strictly: with the thread that restored it)."""

    def __init__(self, pid: int, keeper: subprocess.Popen[bytes], not_collapsed: int) -> None:
        self.pid = pid
        self.not_collapsed = not_collapsed
        """Bytes that were in huge pages and are not now."""
        self._keeper = keeper
        self._handle = os.pidfd_open(pid)

    def ended(self) -> str | None:
        """``None`` while it lives, else how it ended: ``killed by SIGSEGV``, ``exit status 3``."""
        if self._handle < 0:
            return "closed"
        if not select.select([self._handle], [], [], 0)[0]:
            return None
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._keeper.wait(1)  # by then CRIU, its parent, has reaped it, and the kernel tells how it ended
        info = bytearray(struct.pack("Q", _PIDFD_INFO_EXIT).ljust(64, b"\0"))
        try:
            fcntl.ioctl(self._handle, _PIDFD_GET_INFO, info)
        except OSError:
            return "it ended"
        if not struct.unpack_from("Q", info)[0] & _PIDFD_INFO_EXIT:
            return "it ended"
        return describe_end(os.waitstatus_to_exitcode(struct.unpack_from("i", info, 60)[0]))

    def close(self) -> None:
        """Kill it and everything that it forked, and wait until it is gone; idempotent."""
        if self._handle < 0:
            return
        _kill(self._keeper)
        # The namespace's end is not the keeper's: wait for the process itself, so that its memory is free again.
        select.select([self._handle], [], [], 30)
        os.close(self._handle)
        self._handle = -1


class CriuDump:
    """A dump of process ``pid``, taken at once; the process runs on.

    The dump is on tmpfs where there is room, else below ``folder``, and goes away with :meth:`close`. Raises
    :class:`SnapshotError` where there is no room, or where the process holds something that cannot be dumped (an io_uring, a
    perf event, a socket to another process).
    """

    def __init__(self, criu: Criu, pid: int, folder: Path) -> None:
        self._criu = criu
        self._pid = pid
        self._shell_job = [] if os.getsid(pid) == pid else ["--shell-job"]
        self._restored: list[Restored] = []
        self._count = 0
        remove_stale_dumps(folder)
        self.folder = make_dump_folder(resident_bytes(pid), folder)
        self.huge = huge_ranges(pid)
        self._files = GrownFiles(written_files(pid), self.folder)
        # Not on tmpfs: that is often mounted noexec.
        self._script = folder / f"{self.folder.name}.sh"
        try:
            self._script.write_text(_ACTION_SCRIPT)
            self._script.chmod(0o755)
            self._dump()
        except BaseException:
            self.close()
            raise

    def restore(self) -> Restored:
        """A fresh process in the dumped state, running, released by CRIU, with its huge pages back."""
        self._files.cut()
        self._count += 1
        work = self.folder / f"restore-{self._count}"
        work.mkdir()
        keeper = self._start(work)
        try:
            self._await_resumed(keeper, work)
            pid = self._find(keeper)
            restored = Restored(pid, keeper, collapse(pid, self.huge))
        except BaseException:
            _kill(keeper)
            raise
        self._restored.append(restored)
        return restored

    def close(self) -> None:
        """Kill every restored process and remove the dump; idempotent."""
        for restored in self._restored:
            restored.close()
        self._restored.clear()
        with contextlib.suppress(OSError):
            self._files.close()
        self._script.unlink(missing_ok=True)
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _images(self) -> Path:
        return self.folder / "images"

    def _dump(self) -> None:
        self._images().mkdir()
        log = self.folder / "dump.log"
        command = [
            str(self._criu.path),
            "dump",
            "-t",
            str(self._pid),
            "-D",
            str(self._images()),
            "-o",
            str(log),
            "--leave-running",
        ]
        command += [*_DUMP_OPTIONS, *self._shell_job]
        try:
            done = subprocess.run(
                command, stdin=subprocess.DEVNULL, capture_output=True, timeout=600, start_new_session=True, check=False
            )
        except subprocess.TimeoutExpired:
            raise SnapshotError("cannot snapshot the program", "criu took more than ten minutes", _HINT) from None
        if done.returncode != 0:
            raise SnapshotError("cannot snapshot the program", _reason(log), _HINT)

    def _start(self, work: Path) -> subprocess.Popen[bytes]:
        """CRIU as the first process of a PID namespace that this process's end takes down, however it ends."""
        keep = [
            "setpriv",
            "--pdeathsig",
            "KILL",
            *with_files(),
            "setarch",
            "-R",
            "unshare",
            "--pid",
            "--fork",
            "--kill-child",
            "--mount-proc",
        ]
        restore = [
            str(self._criu.path),
            "restore",
            "-D",
            str(self._images()),
            "-W",
            str(work),
            "-o",
            str(work / "restore.log"),
        ]
        restore += [*_RESTORE_OPTIONS, *self._shell_job, "--action-script", str(self._script)]
        with (work / "stderr").open("wb") as errors:
            return subprocess.Popen(
                keep + restore,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                env={**os.environ, "LAYOUT_ADVISE_RESUMED": str(work / "resumed")},
                start_new_session=True,  # Ctrl-C is ours to handle
            )

    def _await_resumed(self, keeper: subprocess.Popen[bytes], work: Path) -> None:
        deadline = time.monotonic() + 300
        while not (work / "resumed").exists():
            if keeper.poll() is not None:
                raise SnapshotError("cannot restore the program", _reason(work / "restore.log", work / "stderr"), _HINT)
            if time.monotonic() > deadline:
                raise SnapshotError("cannot restore the program", "criu took more than five minutes", _HINT)
            time.sleep(0.001)

    def _find(self, keeper: subprocess.Popen[bytes]) -> int:
        """The restored process: CRIU's child that has the old pid in its own namespace."""
        for criu in _children(keeper.pid):
            for pid in _children(criu):
                if _inner_pid(pid) == self._pid:
                    return pid
        raise SnapshotError("cannot restore the program", "it ended at once", _HINT)


def _children(pid: int) -> list[int]:
    with contextlib.suppress(OSError):
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []


def _inner_pid(pid: int) -> int:
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text(errors="replace").splitlines():
            if line.startswith("NSpid:"):
                return int(line.split()[-1])
    return 0


def _kill(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.send_signal(signal.SIGKILL)
    process.wait()


def _reason(*logs: Path) -> str:
    """The first thing that CRIU called an error: what follows are consequences."""
    for log in logs:
        with contextlib.suppress(OSError):
            text = log.read_text(errors="replace")
            errors = [line.split("Error ", 1)[1].partition("): ")[2] for line in text.splitlines() if "Error (" in line]
            errors = [
                error for error in errors if not error.startswith("rlimit:")
            ]  # harmless: root without cap_sys_resource
            if errors:
                # io_uring cannot even be handed over to CRIU, which says nothing better than this.
                if errors[0].startswith("send_fds failed"):
                    return "it holds a file descriptor that cannot be passed on (io_uring?)"
                return "criu: " + errors[0]
            if log.name == "stderr" and text.strip():
                return text.strip().splitlines()[-1]
    return "criu gave no reason"
