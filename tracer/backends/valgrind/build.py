"""The tool and the preloaded table of heap blocks, compiled at first use and kept in the user's cache."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from elftools.elf.elffile import ELFFile

from layout_advise.errors import MachineError
from layout_advise.tracer.backends.valgrind.install import PLATFORM, Valgrind
from layout_advise.tracer.process.agent import FLAGS as AGENT_FLAGS
from layout_advise.tracer.process.agent import SOURCES as AGENT
from layout_advise.tracer.process.build_cache import cache_folder, cached_folder, cached_library
from layout_advise.tracer.process.compiler_run import run_compiler

TOOL = "layout-advise"
_HERE = Path(__file__).resolve().parent
_NLR = _HERE.parents[1] / "nlr"
_CFLAGS = (
    *("-m64", "-O2", "-std=gnu11", "-fno-stack-protector", "-fno-strict-aliasing", "-fno-builtin", "-fomit-frame-pointer"),
    *("-fno-pie", "-fcf-protection=none", "-Wall", "-Wextra", "-Werror"),
    *("-DVGA_amd64=1", "-DVGO_linux=1", "-DVGP_amd64_linux=1", "-DVGPV_amd64_linux_vanilla=1"),
)
# Valgrind's core loads the program below this address.
_LINK = ("-m64", "-static", "-no-pie", "-nodefaultlibs", "-nostartfiles", "-u", "_start", "-Wl,-Ttext-segment=0x58000000")
_FAILED = "cannot build the Valgrind tool"


def _compiler() -> str:
    return os.environ.get("LAYOUT_ADVISE_CC", "gcc")


def _run(command: Sequence[str | Path], folder: Path) -> str:
    """Returns what a compiler says, whose temporary files are in ``folder``."""
    try:
        done = run_compiler(command, folder)
    except OSError as error:
        raise MachineError(_FAILED, f"{command[0]} does not run: {error}", "install gcc") from error
    if done.returncode:
        raise MachineError(_FAILED, done.stderr.strip()[:300], "trace with --backend clone, or install another Valgrind")
    return done.stdout


def _key(text: Sequence[str], files: Sequence[Path]) -> str:
    digest = hashlib.sha256("\0".join((_run([_compiler(), "--version"], Path(tempfile.gettempdir())), *text)).encode())
    for path in files:
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:20]


@cache
def tool_folder(valgrind: Valgrind) -> Path:
    """The folder to give as ``VALGRIND_LIB``: our tool and what of Valgrind it needs. Builds it where it is new.

    Raises :class:`MachineError` where it does not compile or the cache cannot be written.
    """
    sources = [*sorted((_HERE / "tool").glob("*.c")), *sorted(_NLR.glob("*.c"))]
    headers = [_HERE / "tool" / "tool.h", *sorted(_NLR.glob("*.h"))]
    place = (valgrind.version, str(valgrind.headers), str(valgrind.libraries), str(valgrind.support), *_CFLAGS, *_LINK)
    target = cache_folder() / "valgrind" / _key(place, [*sources, *headers])
    return cached_folder(target, lambda folder: _build_tool(valgrind, sources, folder), _FAILED)


def _build_tool(valgrind: Valgrind, sources: Sequence[Path], folder: Path) -> None:
    objects: list[Path] = []
    for source in sources:
        objects.append(folder / f"{source.stem}.o")
        include = ("-isystem", valgrind.headers, "-I", _NLR)
        _run([_compiler(), *_CFLAGS, *include, "-c", "-o", objects[-1], source], folder)
    core, vex, support = (valgrind.libraries / f"lib{n}-{PLATFORM}.a" for n in ("coregrind", "vex", "gcc-sup"))
    _run([_compiler(), *_LINK, "-o", folder / f"{TOOL}-{PLATFORM}", *objects, core, vex, "-lgcc", support], folder)
    for built in objects:
        built.unlink()
    for name in (f"vgpreload_core-{PLATFORM}.so", "default.supp"):
        (folder / name).symlink_to(valgrind.support / name)
    folder.chmod(0o755)


@cache
def blocks_library() -> Path:
    """The shared object that, preloaded, keeps the table of heap blocks. Raises :class:`MachineError`."""
    sources = [_HERE / "preload.c", *(AGENT / "heap" / name for name in ("apart.c", "aside.c", "blocks.c"))]
    headers = [AGENT / name for name in ("agent.h", "abi.h", "sys.h")]
    target = cache_folder() / "valgrind" / f"blocks-{_key(AGENT_FLAGS, [*sources, *headers])}.so"
    command: list[str | Path] = [_compiler(), *AGENT_FLAGS, "-I", AGENT, "-o"]

    def build(library: Path) -> None:
        _run([*command, library, *sources, "-ldl"], library.parent)

    return cached_library(target, build, _FAILED)


@cache
def blocks_symbols() -> tuple[int, int]:
    """Addresses of the table's pointer and of its number of slots in :func:`blocks_library`."""
    with blocks_library().open("rb") as file:
        symbols: Any = ELFFile(file).get_section_by_name(".symtab")
        table, slots = (symbols.get_symbol_by_name(name)[0]["st_value"] for name in ("la_blocks", "la_blocks_slots"))
    return int(table), int(slots)
