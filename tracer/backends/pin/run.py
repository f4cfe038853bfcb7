"""The Pin backend: the kit, the tool built with the kit's rules, and a run of the program under it."""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path

from layout_advise.errors import MachineError, TraceError
from layout_advise.tracer.backends.protocol import Backend, Rerun, TracedCall, TraceRequest
from layout_advise.tracer.backends.tool.run import ToolRun, preload_blocks, read_run, run_to_end
from layout_advise.tracer.backends.tool.trace import parked_trace
from layout_advise.tracer.backends.valgrind.build import blocks_library, blocks_symbols
from layout_advise.tracer.process.build_cache import cache_folder, cached_folder
from layout_advise.tracer.process.compiler_run import run_compiler
from layout_advise.tracer.process.launch import describe_end

_HERE = Path(__file__).resolve().parent
_HINT = "unpack Intel's Pin kit and set PIN_ROOT to it, or use --backend valgrind"


def find_kit() -> Path:
    """The kit that ``PIN_ROOT`` names. Raises :class:`MachineError` where there is none."""
    name = os.environ.get("PIN_ROOT")
    if not name:
        raise MachineError("cannot trace with Pin", "PIN_ROOT names no kit", _HINT)
    kit = Path(name).absolute()
    for needed in ("pin", "source/include/pin/pin.H", "source/tools/Config/makefile.config"):
        if not (kit / needed).is_file():
            raise MachineError("cannot trace with Pin", f"PIN_ROOT={name} is no Pin kit: it has no {needed}", _HINT)
    return kit


def tool_path(kit: Path) -> Path:
    """The tool built against ``kit``, from the user's cache. Raises :class:`MachineError` where it does not compile."""
    digest = hashlib.sha256(str(kit).encode() + (kit / "source/include/pin/pin.H").read_bytes())
    for path in sorted(
        [*_HERE.glob("*.cpp"), *_HERE.glob("*.h"), _HERE / "makefile", *(_HERE.parents[1] / "nlr").glob("nlr*.[ch]")]
    ):
        digest.update(path.name.encode() + path.read_bytes())
    target = cache_folder() / "pin" / digest.hexdigest()[:20]

    def build(folder: Path) -> None:
        command = ["make", "-C", str(_HERE), f"PIN_ROOT={kit}", f"OBJDIR={folder}/", f"{folder}/tool.so"]
        done = run_compiler(command, folder)
        if done.returncode:
            raise MachineError("cannot build the Pin tool", done.stderr.strip()[:300], "use --backend valgrind")

    return cached_folder(target, build, "cannot build the Pin tool", "install make and g++") / "tool.so"


def run_pin(rerun: Rerun) -> ToolRun:
    """As :func:`layout_advise.tracer.backends.valgrind.run.run_tool`, under Pin."""
    kit = find_kit()
    tool = tool_path(kit)
    table, slots = blocks_symbols()
    with tempfile.TemporaryDirectory(prefix="layout-advise-", dir=rerun.folder) as temporary:
        knobs = {
            "out": temporary,
            "entry_file": rerun.entry.path.resolve(),
            "entry_address": rerun.entry.address,
            "blocks_file": blocks_library().resolve(),
            "blocks_at": table,
            "slots_at": slots,
            "call": rerun.call,
            "cap": rerun.most_accesses,
        }
        given = [word for name, value in knobs.items() for word in (f"-{name}", str(value))]
        code = run_to_end(rerun, [preload_blocks()], [str(kit / "pin"), "-t", str(tool), *given, "--"], under="Pin")
        if not (Path(temporary) / "result").exists():
            why = f"the tool left no result; pin ended with {describe_end(code)}"
            raise TraceError(f"{rerun.entry.symbol} was not traced under Pin", why, "use --backend valgrind")
        return read_run(Path(temporary), code, rerun, "Pin")


class PinBackend(Backend):
    """Runs the program once more, under Pin with our tool."""

    name = "pin"
    manner = "under Pin"
    automatic = False

    def check(self) -> None:
        """Raises the error of :func:`find_kit`."""
        find_kit()

    def trace(self, request: TraceRequest) -> TracedCall:
        """Raises the errors of :func:`run_pin`."""
        return parked_trace(run_pin(request.rerun), request, self.name)
