"""Starting the program with the agent in it: fixed addresses, own session, stdin from a file."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import cache
from pathlib import Path

from layout_advise.errors import ProgramError
from layout_advise.tracer.process.agent import agent_path
from layout_advise.tracer.process.channel import RunFolder


@cache
def _launcher() -> ThreadPoolExecutor:
    # The program asks the kernel to die with the *thread* that started it, so that thread has to live on.
    return ThreadPoolExecutor(max_workers=1, thread_name_prefix="launcher")


@cache
def fixed_addresses() -> tuple[str, ...]:
    """The prefix of a command that switches address randomisation off; empty where that is not permitted."""
    setarch = shutil.which("setarch")
    if setarch and subprocess.run([setarch, "-R", "true"], capture_output=True).returncode == 0:
        return (setarch, "-R")
    return ()


def launch(
    folder: RunFolder,
    command: Sequence[str],
    *,
    stdin_path: Path | None,
    cwd: Path | None,
    env: Mapping[str, str] | None,
    discard: bool,
    stdout: Path | None = None,
) -> subprocess.Popen[bytes]:
    """Start ``command`` under the agent that ``folder`` configures. ``discard``: its output goes nowhere;
    ``stdout``: its standard output goes into this file.

    Raises :class:`ProgramError` if it cannot be started at all.
    """
    environment = dict(os.environ if env is None else env)
    program = shutil.which(command[0], path=environment.get("PATH")) if "/" not in command[0] else command[0]
    base = Path(cwd) if cwd else Path.cwd()
    if program is None or not (base / program).is_file():
        raise ProgramError(f"cannot start {command[0]}", "no such program")
    preload = ":".join(filter(None, (str(agent_path()), environment.get("LD_PRELOAD", ""))))
    # `env` comes between, because setarch would otherwise load the agent itself and use it up.
    variables = [f"LD_PRELOAD={preload}", f"LAYOUT_ADVISE_AGENT={folder.path}"]
    full = [*fixed_addresses(), shutil.which("env") or "/usr/bin/env", *variables, str(program), *command[1:]]
    environment.pop("LD_PRELOAD", None)
    output = subprocess.DEVNULL if discard else None
    with ExitStack() as files:
        source = files.enter_context(open(stdin_path or os.devnull, "rb"))
        target = files.enter_context(open(stdout, "wb")) if stdout is not None else output
        try:
            return (
                _launcher()
                .submit(
                    lambda: subprocess.Popen(
                        full, stdin=source, stdout=target, stderr=output, cwd=cwd, env=environment, start_new_session=True
                    )
                )
                .result()
            )
        except OSError as error:
            raise ProgramError(f"cannot start {command[0]}", str(error)) from error


def kill_session(process: subprocess.Popen[bytes]) -> None:
    """Kill the program and what it started in its process group, and reap it."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    if process.poll() is None:
        process.kill()
    process.wait()


def signal_name(number: int) -> str:
    """``SIGSEGV`` for 11."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def describe_end(returncode: int) -> str:
    """``killed by SIGSEGV`` or ``exit status 3``."""
    return f"killed by {signal_name(-returncode)}" if returncode < 0 else f"exit status {returncode}"
