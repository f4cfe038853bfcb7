"""Runs a program under a tracing tool (Valgrind, Pin) and reads the folder that the tool leaves behind."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from elftools.elf.elffile import ELFFile
from numpy.typing import NDArray

from layout_advise.errors import MachineError, ProgramError, TraceError
from layout_advise.tracer.backends.protocol import Rerun
from layout_advise.tracer.backends.tool.result import Seen, SeenOrder, ToolResult, read_result
from layout_advise.tracer.backends.valgrind.build import blocks_library
from layout_advise.tracer.folding.relocate import Process
from layout_advise.tracer.offspring.marks import MARK, fresh_mark
from layout_advise.tracer.process.launch import describe_end, fixed_addresses, kill_session
from layout_advise.tracer.process.patching import Entry
from layout_advise.tracer.process.procfs import parse_mappings
from layout_advise.tracer.trace.trace import Allocation

_BLOCK_BYTES = 32
_AGAIN = "free some space on the disk and trace again"


@dataclass(frozen=True, slots=True, eq=False)
class ToolRun:
    """The accesses of one call, in the addresses of the process that the tool ran. ``records`` (raw mode) are words
    ``address | position in references << 48``, in the order of the accesses. ``after`` are the heap's blocks when the call
    was done, where the tool tells."""

    process: Process
    references: tuple[Seen, ...]
    accesses: int
    truncated: bool
    foreign: int
    records: NDArray[np.uint64] | None = None
    order: SeenOrder | None = None
    after: tuple[Allocation, ...] | None = None


def file_offset(entry: Entry) -> int:
    """The offset of the entry's first instruction in its file. Raises :class:`TraceError` where the file does not load
    it."""
    with entry.path.open("rb") as file:
        for segment in ELFFile(file).iter_segments("PT_LOAD"):
            offset = entry.address - int(segment["p_vaddr"])
            if 0 <= offset < segment["p_filesz"]:
                return offset + int(segment["p_offset"])
    raise TraceError(f"{entry.symbol} was not traced", f"{entry.path} does not load {entry.address:#x}")


def preload_blocks() -> str:
    """The variable that has the table of heap blocks preloaded, as an argument of ``env``."""
    return "LD_PRELOAD=" + ":".join(filter(None, (str(blocks_library()), os.environ.get("LD_PRELOAD", ""))))


def run_to_end(rerun: Rerun, variables: Sequence[str], tool: Sequence[str], under: str) -> int:
    """Runs the program under ``tool``, its output discarded, at fixed addresses and with ``variables`` (``NAME=value``).

    Returns its exit code. Raises :class:`MachineError` where it cannot be started and :class:`ProgramError` when its time is
    over; it is killed then. ``under`` names the tool in messages.
    """
    mark = fresh_mark()
    command = [
        *fixed_addresses(),
        shutil.which("env") or "/usr/bin/env",
        *variables,
        f"{MARK}={mark}",
        *tool,
        *rerun.command,
    ]
    with open(rerun.stdin or os.devnull, "rb") as source:
        try:
            process = subprocess.Popen(
                command, stdin=source, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
            )
        except OSError as error:
            raise MachineError(f"cannot trace under {under}", f"{command[0]}: {error}") from error
    try:
        return process.wait(rerun.timeout)
    except subprocess.TimeoutExpired:
        why = f"not done after {rerun.timeout:g} s"
        hint = "raise --timeout, or ask for an earlier --call"
        raise ProgramError(f"the call of {rerun.entry.symbol} was not traced under {under}", why, hint) from None
    finally:
        kill_session(process, mark)


def read_run(out: Path, code: int, rerun: Rerun, under: str) -> ToolRun:
    """The tool's folder ``out`` after the program ended with exit code ``code``. Raises :class:`ProgramError` where it ended
    before the call, :class:`TraceError` where the tool gave up or its files are damaged."""
    result = read_result(out / "result")
    entry, call = rerun.entry, rerun.call
    if result.outcome == "never":
        times = "once" if result.calls == 1 else f"{result.calls} times"
        why = f"{entry.symbol} was entered {times}; the program ended with {describe_end(code)}"
        if not result.calls:
            why = f"{entry.symbol} was never entered; the program ended with {describe_end(code)}"
        raise ProgramError(f"there is no call {call} under {under}", why)
    if code < 0:  # the tool ends the program itself when the call is done, so it was killed within it
        why = f"the program was {describe_end(code)} within call {call}"
        raise ProgramError(f"{entry.symbol} was not traced under {under}", why)
    if result.outcome == "broken":
        raise TraceError(f"{entry.symbol} was not traced under {under}", result.why, "use --backend clone")
    records = np.fromfile(out / "records", dtype="<u8") if (out / "records").exists() else None
    truncated = result.outcome == "truncated"
    process = _process(out, result)
    known = not truncated and not result.foreign and (out / "after").exists()  # other threads have blocks of their own
    after = _allocations(out / "after") if known else None
    return ToolRun(process, result.references, result.accesses, truncated, result.foreign, records, result.order, after)


def _process(out: Path, result: ToolResult) -> Process:
    allocations, maps = _allocations(out / "blocks"), _read(out / "maps").decode(errors="surrogateescape")
    if not maps.endswith("\n"):
        raise TraceError("the tracing tool's maps are damaged", "they end within a line", _AGAIN)
    return Process(parse_mappings(maps), allocations, result.registers)


def _allocations(path: Path) -> tuple[Allocation, ...]:
    blocks = _read(path)
    if len(blocks) % _BLOCK_BYTES:
        raise TraceError("the tracing tool's blocks are damaged", "they end within a block", _AGAIN)
    table = np.frombuffer(blocks, dtype="<u8").reshape(-1, 4)
    return tuple(Allocation(*row) for row in table[np.argsort(table[:, 0])].tolist())


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise TraceError(f"the tracing tool left no {path.name}", str(error.strerror), _AGAIN) from error
