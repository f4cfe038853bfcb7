"""Running a program under the tool until the chosen call of the hotspot is done."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import capstone
import numpy as np
from elftools.elf.elffile import ELFFile
from numpy.typing import NDArray

from layout_advise.errors import MachineError, ProgramError, TraceError
from layout_advise.tracer.clone.decode import functions_of
from layout_advise.tracer.code import CodeRange, Region
from layout_advise.tracer.relocate import Process
from layout_advise.tracer.snapshot.launch import describe_end, fixed_addresses
from layout_advise.tracer.snapshot.patching import Entry
from layout_advise.tracer.snapshot.procfs import parse_mappings
from layout_advise.tracer.trace import Allocation
from layout_advise.tracer.valgrind.build import TOOL, blocks_library, blocks_symbols, tool_folder
from layout_advise.tracer.valgrind.install import Valgrind, find_valgrind
from layout_advise.tracer.valgrind.result import Seen, ToolResult, read_result

_EVEX = 0x62


@dataclass(frozen=True, slots=True, eq=False)
class ToolRun:
    """What one call touched, in the addresses of the process that ran under Valgrind. ``records`` (raw mode) are words
    ``address | position in references << 48``, in the order of the accesses."""

    process: Process
    references: tuple[Seen, ...]
    accesses: int
    truncated: bool
    foreign: int
    records: NDArray[np.uint64] | None = None


def run_tool(
    command: Sequence[str],
    entry: Entry,
    call: int,
    cap: int,
    *,
    stdin_path: Path | None = None,
    cwd: Path | None = None,
    timeout: float | None = None,
    raw: bool = False,
    preload: bool = True,
    folder: Path | None = None,
) -> ToolRun:
    """Run ``command`` under the tool, its output discarded, and end it when call ``call`` (from 1) of ``entry`` is done.

    At most ``cap`` accesses are taken. ``preload=False`` for statically linked programs: the heap's blocks are then unknown.
    Temporary files go to ``folder``. Raises :class:`MachineError` without a fit Valgrind, :class:`ProgramError` where the
    program ends or hangs before, :class:`TraceError` where the tool fails.
    """
    valgrind = find_valgrind()
    with tempfile.TemporaryDirectory(prefix="layout-advise-", dir=folder) as temporary:
        out = Path(temporary)
        code = _run(
            _command(valgrind, out, command, entry, call, cap, raw, preload), valgrind, stdin_path, cwd, timeout, entry
        )
        return _result(out, code, entry, call, raw)


def _command(
    valgrind: Valgrind, out: Path, command: Sequence[str], entry: Entry, call: int, cap: int, raw: bool, preload: bool
) -> list[str]:
    options = {
        "tool": TOOL,
        "log-file": out / "log",
        "out": out,
        "entry-file": entry.path,
        "entry-offset": file_offset(entry),
        "call": call,
        "cap": cap,
        "raw": "yes" if raw else "no",
    }
    variables = [f"VALGRIND_LIB={tool_folder(valgrind)}"]
    if preload:
        table, slots = blocks_symbols()
        options |= {"blocks-file": blocks_library(), "blocks-at": table, "slots-at": slots}
        variables.append(":".join(filter(None, (f"LD_PRELOAD={blocks_library()}", os.environ.get("LD_PRELOAD", "")))))
    given = [f"--{name}={value}" for name, value in options.items()]
    env = shutil.which("env") or "/usr/bin/env"
    quiet = ["--command-line-only=yes", "-q", "--vgdb=no"]
    return [*fixed_addresses(), env, *variables, str(valgrind.launcher), *quiet, *given, *command]


def file_offset(entry: Entry) -> int:
    """Where the entry's first instruction stands in its file. Raises :class:`TraceError` where the file does not load it."""
    with entry.path.open("rb") as file:
        for segment in ELFFile(file).iter_segments("PT_LOAD"):
            offset = entry.address - int(segment["p_vaddr"])
            if 0 <= offset < segment["p_filesz"]:
                return offset + int(segment["p_offset"])
    raise TraceError(f"{entry.symbol} was not traced under Valgrind", f"{entry.path} does not load {entry.address:#x}")


def _run(
    command: list[str], valgrind: Valgrind, stdin: Path | None, cwd: Path | None, timeout: float | None, entry: Entry
) -> int:
    with open(stdin or os.devnull, "rb") as source:
        try:
            process = subprocess.Popen(
                command, stdin=source, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=cwd, start_new_session=True
            )
        except OSError as error:
            raise MachineError("cannot trace under Valgrind", f"{valgrind.launcher}: {error}") from error
    try:
        return process.wait(timeout)
    except subprocess.TimeoutExpired:
        why = f"not done after {timeout:g} s"
        hint = "raise --timeout, or ask for an earlier --call"
        raise ProgramError(f"the call of {entry.symbol} was not traced under Valgrind", why, hint) from None
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _result(out: Path, code: int, entry: Entry, call: int, raw: bool) -> ToolRun:
    if not (out / "result").exists():
        log = (out / "log").read_text(errors="replace") if (out / "log").exists() else ""
        raise _failed(log, code, entry)
    result = read_result(out / "result")
    if result.outcome == "never":
        times = "once" if result.calls == 1 else f"{result.calls} times"
        why = f"{entry.symbol} was entered {times}; the program ended with {describe_end(code)}"
        if not result.calls:
            why = f"{entry.symbol} was never entered; the program ended with {describe_end(code)}"
        raise ProgramError(f"there is no call {call} under Valgrind", why)
    if result.outcome == "broken":
        raise TraceError(f"{entry.symbol} was not traced under Valgrind", result.why, "use --backend clone")
    records = np.fromfile(out / "records", dtype="<u8") if raw and (out / "records").exists() else None
    return ToolRun(
        _process(out, result), result.references, result.accesses, result.outcome == "truncated", result.foreign, records
    )


def _process(out: Path, result: ToolResult) -> Process:
    table = np.fromfile(out / "blocks", dtype="<u8").reshape(-1, 4)
    rows = table[np.argsort(table[:, 0])].tolist()
    return Process(parse_mappings((out / "maps").read_text()), tuple(Allocation(*row) for row in rows), result.registers)


def _failed(log: str, code: int, entry: Entry) -> ProgramError | TraceError:
    what = f"{entry.symbol} was not traced under Valgrind"
    unknown = re.search(r"unhandled instruction bytes: ([0-9A-Fx ]+)", log)
    if unknown:
        evex = " (AVX-512)" if unknown[1].split()[0].lower() == "0x62" else ""
        why = f"Valgrind does not know an instruction that the program executes{evex}: {unknown[1].strip()}"
        return TraceError(what, why, "use --backend clone, or build the program with -mno-avx512f")
    lines = [re.sub(r"^[=*-]+\d+[=*-]+ ?", "", line) for line in log.splitlines()]
    text = " ".join(line for line in lines if line)[:200]
    return ProgramError(what, text or f"the program ended with {describe_end(code)}")


def check_instructions(region: Region) -> None:
    """Raise :class:`TraceError` where the region or a callee has AVX-512 code, which no Valgrind executes."""
    for function in functions_of(region):
        for place in function.ranges:
            found = _evex(place)
            if found is not None:
                why = f"it has AVX-512 code (`{found}`), which Valgrind cannot execute"
                hint = "use --backend clone, or build the program with -mno-avx512f"
                raise TraceError(f"{region.symbol} cannot be traced under Valgrind", why, hint)


def _evex(place: CodeRange) -> str | None:
    engine = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
    for insn in engine.disasm(place.code, place.start):
        if insn.bytes[0] == _EVEX:
            return f"{insn.mnemonic} {insn.op_str} at {insn.address:#x}"
    return None
