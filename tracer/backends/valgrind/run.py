"""Running a program under the tool until the chosen call of the hotspot is done."""

from __future__ import annotations

import errno
import os
import re
import tempfile
from pathlib import Path

from layout_advise.errors import ProgramError, TraceError
from layout_advise.tracer.backends.protocol import Rerun
from layout_advise.tracer.backends.tool.run import ToolRun, file_offset, preload_blocks, read_run, run_to_end
from layout_advise.tracer.backends.valgrind.build import TOOL, blocks_library, blocks_symbols, tool_folder
from layout_advise.tracer.backends.valgrind.install import find_valgrind
from layout_advise.tracer.code.decoder import disassemble
from layout_advise.tracer.code.evex import EVEX_BYTE
from layout_advise.tracer.code.instructions import functions_of
from layout_advise.tracer.code.region import CodeRange, Region
from layout_advise.tracer.process.disk_space import free_bytes
from layout_advise.tracer.process.launch import describe_end
from layout_advise.tracer.process.patching import Entry

_UNWRITTEN = re.compile(r"cannot write ([\w ]+): error (\d+)")
_LOG_BYTES = 4096
_UNKNOWN = re.compile(r"unhandled instruction bytes: ([0-9A-Fx ]+)")


def run_tool(rerun: Rerun, *, raw: bool = False, preload: bool = True, lower: int = 0) -> ToolRun:
    """Runs the program under the tool, its output discarded, and ends it when the call is done.

    ``preload=False`` for statically linked programs: the heap's blocks are then unknown.
    ``lower``: by how many bytes, a multiple of 16, the stack begins below where it would.
    Raises :class:`MachineError` without a fit Valgrind, :class:`ProgramError` where the program ends or hangs before,
    :class:`TraceError` where the tool fails.
    """
    valgrind = find_valgrind()
    with tempfile.TemporaryDirectory(prefix="layout-advise-", dir=rerun.folder) as temporary:
        out = Path(temporary)
        # The environment lies above the stack: what is added to it moves the stack down.
        variables = [f"VALGRIND_LIB={tool_folder(valgrind)}", f"LAYOUT_ADVISE_ROOT={'.' * lower}"]
        if preload:
            variables.append(preload_blocks())
        quiet = ["--command-line-only=yes", "-q", "--sigill-diagnostics=yes", "--vgdb=no"]
        options = [f"--{name}={value}" for name, value in _options(out, rerun, raw, preload).items()]
        code = run_to_end(rerun, variables, [str(valgrind.launcher), *quiet, *options], under="Valgrind")
        log = (out / "log").read_text(errors="replace") if (out / "log").exists() else ""
        if not (out / "result").exists() or (code < 0 and _UNKNOWN.search(log)):
            raise _failed(out, log, code, rerun.entry)
        return read_run(out, code, rerun, "Valgrind")


def _options(out: Path, rerun: Rerun, raw: bool, preload: bool) -> dict[str, object]:
    options: dict[str, object] = {
        "tool": TOOL,
        "log-file": out / "log",
        "out": out,
        "entry-file": rerun.entry.path,
        "entry-offset": file_offset(rerun.entry),
        "call": rerun.call,
        "cap": rerun.most_accesses,
        "raw": "yes" if raw else "no",
    }
    if preload:
        table, slots = blocks_symbols()
        options |= {"blocks-file": blocks_library(), "blocks-at": table, "slots-at": slots}
    return options


def _failed(out: Path, log: str, code: int, entry: Entry) -> ProgramError | TraceError:
    what = f"{entry.symbol} was not traced under Valgrind"
    unwritten = _UNWRITTEN.search(log)
    if unwritten or (not log and free_bytes(out) < _LOG_BYTES):
        number = int(unwritten[2]) if unwritten else errno.ENOSPC
        why = f"the tool cannot write {unwritten[1] if unwritten else 'anything'} to {out.parent}: {os.strerror(number)}"
        return TraceError(what, why, "free some space there")
    unknown = _UNKNOWN.search(log)
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
    for insn in disassemble(place.code, place.start, detail=False):
        if insn.bytes[0] == EVEX_BYTE:
            return f"{insn.mnemonic} {insn.op_str} at {insn.address:#x}"
    return None
