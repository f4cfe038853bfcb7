"""Starting the program with the agent in it: fixed addresses, own session, stdin from a file."""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from layout_advise.errors import ProgramError
from layout_advise.tracer.offspring.ending import end_started
from layout_advise.tracer.offspring.marks import MARK
from layout_advise.tracer.process.agent import agent_path


@cache
def _launcher() -> ThreadPoolExecutor:
    # The program asks the kernel to die with the *thread* that started it, so that thread has to live on.
    return ThreadPoolExecutor(max_workers=1, thread_name_prefix="launcher")


os.register_at_fork(after_in_child=_launcher.cache_clear)  # a fork of this process has none of its threads


@cache
def fixed_addresses() -> tuple[str, ...]:
    """The prefix of a command that switches address randomisation off; empty where that is not permitted."""
    setarch = shutil.which("setarch")
    if setarch and subprocess.run([setarch, "-R", "true"], capture_output=True).returncode == 0:
        return (setarch, "-R")
    return ()


@dataclass(frozen=True, slots=True)
class Start:
    """How a program is started: ``command``, its standard input (None: empty), its environment (None: ours).

    ``discard``: its output goes nowhere, else where ours goes; with ``stdout`` its standard output goes into that file, with
    ``stderr`` its messages into that one.
    """

    command: Sequence[str]
    stdin: Path | None = None
    env: Mapping[str, str] | None = None
    discard: bool = True
    stdout: Path | None = None
    stderr: Path | None = None

    @property
    def environment(self) -> dict[str, str]:
        """The environment as a new dictionary."""
        return dict(os.environ if self.env is None else self.env)

    @property
    def preload(self) -> str:
        """The user's own preloaded libraries."""
        return self.environment.get("LD_PRELOAD", "")


def launch(start: Start, folder: Path, mark: str) -> subprocess.Popen[bytes]:
    """Start the program with the agent, which finds its orders in ``folder``; ``mark`` tells what it starts (``offspring``).

    Raises :class:`ProgramError` if it cannot be started at all.
    """
    full, environment = _under_agent(start, folder, mark)
    output = subprocess.DEVNULL if start.discard else None
    with ExitStack() as files:
        source = files.enter_context(open(start.stdin or os.devnull, "rb"))
        target = files.enter_context(open(start.stdout, "wb")) if start.stdout is not None else output
        messages = files.enter_context(open(start.stderr, "wb")) if start.stderr is not None else output

        def begin() -> subprocess.Popen[bytes]:
            return subprocess.Popen(
                full, stdin=source, stdout=target, stderr=messages, env=environment, start_new_session=True
            )

        try:
            return _launcher().submit(begin).result()
        except OSError as error:
            raise ProgramError(f"cannot start {start.command[0]}", str(error)) from error


def _under_agent(start: Start, folder: Path, mark: str) -> tuple[list[str], dict[str, str]]:
    """The command that starts the program with the agent, and its environment."""
    environment = start.environment
    name, *arguments = start.command
    program = name if "/" in name else shutil.which(name, path=environment.get("PATH"))
    if program is None or not Path(program).is_file():
        raise ProgramError(f"cannot start {name}", "no such program")
    preload = ":".join(filter(None, (str(agent_path()), start.preload)))
    # `env` comes between, because setarch would otherwise load the agent itself and use it up.
    variables = [f"LD_PRELOAD={preload}", f"LAYOUT_ADVISE_AGENT={folder}", f"{MARK}={mark}"]
    environment.pop("LD_PRELOAD", None)
    return [*fixed_addresses(), shutil.which("env") or "/usr/bin/env", *variables, program, *arguments], environment


def wait_for_end(process: subprocess.Popen[bytes], timeout: float | None, what: str, hint: str = "raise --timeout") -> float:
    """Wait for the program's end, and return the seconds that its first thread stood in line for a processor (0 where the
    kernel does not tell). Raises :class:`ProgramError` after ``timeout`` seconds: it hung while ``what``."""
    queued = 0.0
    try:
        with contextlib.suppress(OSError, IndexError, ValueError):
            _await(process, timeout)
            queued = int(Path(f"/proc/{process.pid}/schedstat").read_text().split()[1]) / 1e9
        process.wait(timeout)
    except subprocess.TimeoutExpired:
        raise ProgramError(f"the program hung while {what}", f"still running after {timeout:g} s", hint) from None
    return queued


def _await(process: subprocess.Popen[bytes], timeout: float | None) -> None:
    """Waits for the end of a process that is still to be collected."""
    descriptor = os.pidfd_open(process.pid)
    try:
        if not select.select([descriptor], [], [], timeout)[0]:
            raise subprocess.TimeoutExpired(process.args, timeout or 0.0)
    finally:
        os.close(descriptor)


def kill_session(process: subprocess.Popen[bytes], mark: str) -> None:
    """Kill the program and what it started, and reap it."""
    if process.poll() is None:
        process.kill()
    end_started(process.pid, mark)
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
