"""Starting a program and stopping it at a call of its hotspot."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from layout_advise.errors import ProgramError
from layout_advise.tracer.process.agent_run import agent_run
from layout_advise.tracer.process.channel import Mode, Orders, RunFolder, State
from layout_advise.tracer.process.launch import Start, describe_end
from layout_advise.tracer.process.patching import Entry
from layout_advise.tracer.snapshot.agent_process import AgentProcess


def _ended(process: subprocess.Popen[bytes]) -> str | None:
    code = process.poll()
    return None if code is None else describe_end(code)


def _never(entry: Entry, call: int, folder: RunFolder, process: subprocess.Popen[bytes]) -> ProgramError:
    status = folder.status()
    end = describe_end(process.returncode)
    name = entry.symbol or hex(entry.address)
    if status.state == State.ABSENT:
        return ProgramError("the agent was not loaded into the program", f"it ended with {end}", "is it static or setuid?")
    if status.error:
        return ProgramError(f"cannot stop at {name}", status.error)
    if status.state == State.LOADED:
        return ProgramError(f"{name} was never reached", f"{entry.path.name} was not loaded; the program ended with {end}")
    calls = status.calls_of(entry)
    why = f"reached {calls} {'time' if calls == 1 else 'times'}, call {call} asked; the program ended with {end}"
    return ProgramError(f"{name} was never reached" if not calls else f"{name} has no call {call}", why)


def _await_parked(
    folder: RunFolder, process: subprocess.Popen[bytes], entry: Entry, call: int, timeout: float | None
) -> None:  # fmt: skip
    deadline = None if timeout is None else time.monotonic() + timeout
    pause = 5e-4
    while folder.status().state != State.PARKED:
        if process.poll() is not None and folder.status().state != State.PARKED:
            raise _never(entry, call, folder, process)
        if deadline is not None and time.monotonic() > deadline:
            calls = folder.status().calls_of(entry)
            what = f"the program did not reach call {call} of {entry.symbol or hex(entry.address)}"
            raise ProgramError(what, f"{calls} calls within {timeout:g} s", "raise --timeout or ask for an earlier --call")
        time.sleep(pause)
        pause = min(pause * 1.2, 0.02)


def park(
    command: Sequence[str],
    entry: Entry,
    call: int,
    *,
    stdin_path: Path | None = None,
    env: Mapping[str, str] | None = None,
    timeout: float | None = None,
    command_timeout: float = 120.0,
) -> AgentProcess:
    """Start ``command`` and stop it at call ``call`` (from 1) of ``entry``; its output goes nowhere.

    ``timeout`` (seconds) holds until it is parked, ``command_timeout`` for every command afterwards. Raises
    :class:`ProgramError` if the program ends or hangs before, :class:`SnapshotError` if the entry cannot be patched.
    """
    with ExitStack() as stack:
        orders = Orders(Mode.PARK, entry, first=call)
        folder, process = stack.enter_context(agent_run(Start(command, stdin_path, env), orders))
        _await_parked(folder, process, entry, call, timeout)
        pid = folder.status().pid
        end = stack.pop_all().close
    program = AgentProcess(folder, "0", pid, on_close=end, timeout=command_timeout, ended=lambda: _ended(process))
    try:
        program.ping()
        program.registers()  # asked here, so that forks and restored copies need not ask again
        program.allocations()
        program.own_ranges()
        program.mappings_at_park()
    except BaseException:
        program.close()
        raise
    return program
