"""Running compilers so that nothing of them is left, whatever ends them."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path


def run_compiler(
    command: Sequence[str | Path], folder: Path, seconds: float | None = None
) -> subprocess.CompletedProcess[str]:
    """Runs a compiler to its end, with its temporary files in a folder of their own in ``folder``.

    Raises OSError where it does not start, :class:`subprocess.TimeoutExpired` after ``seconds``. A compiler that is given up
    is killed with what it has started: its linker would run on, and leave its files where it is killed later.
    """
    with (
        tempfile.TemporaryDirectory(prefix=".cc-", dir=folder, ignore_cleanup_errors=True) as room,
        subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            env={**os.environ, "TMPDIR": room},
            process_group=0,
        ) as running,
    ):
        try:
            out, err = running.communicate(timeout=seconds)
        except BaseException:
            with contextlib.suppress(ProcessLookupError):  # it may just have ended
                os.killpg(running.pid, signal.SIGKILL)
            raise
    return subprocess.CompletedProcess(command, running.returncode, out, err)
