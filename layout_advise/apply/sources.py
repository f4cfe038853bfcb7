"""Which files the program is made of, and the flags each is read with."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from elftools.elf.elffile import ELFFile

from layout_advise.errors import SourceError, UsageError
from layout_advise.tracer.program.dwarf import DebugInfo
from layout_advise.tracer.program.elf_checks import DEBUG_INFORMATION, damage_named
from layout_advise.tracer.program.entries.attributes import text

SUFFIXES = (".c", ".cc", ".cpp", ".cxx", ".C", ".c++")
TAKEN = ("-D", "-U", "-I", "-std", "-f", "-include", "-isystem", "-iquote", "-m", "-x", "-pthread", "-nostdinc", "-ansi")
"""Beginnings of flags that say how source is to be read."""
UNREAD = ("-fplugin", "-fdump", "-fsanitize", "-fprofile", "-flto", "-fcf-protection", "-fstack-clash", "-fira", "-ftree",
          "-fno-tree", "-fvect", "-mtune", "-march", "-fasynchronous", "-fipa", "-funroll", "-ffunction", "-fpatchable",
          "-fgcse", "-fpre", "-frename", "-freorder", "-fsched", "-fweb", "-falign", "-fdebug-prefix-map",
          "-ffile-prefix-map", "-fmax-errors", "-fdiagnostics")  # fmt: skip
"""Beginnings of flags that say nothing of it, and that not every compiler knows."""
APART = ("-D", "-U", "-I", "-include", "-isystem", "-iquote", "-x")


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A translation unit: its file, and flags as seen from ``folder``."""

    path: Path
    flags: tuple[str, ...]
    folder: Path
    compiler: str = "gcc"


def aligns_new(one: SourceFile) -> bool:
    """True if ``new`` and the library's containers give memory aligned as types ask (C++17), as the compiler says."""
    standard = [flag for flag in one.flags if flag.startswith(("-std", "-faligned-new", "-fno-aligned-new"))]
    command = [one.compiler, *standard, "-x", "c++", "-dM", "-E", os.devnull]
    try:
        macros = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    except OSError:
        return False
    return "__cpp_aligned_new" in macros


def from_compile_commands(file: Path) -> tuple[SourceFile, ...]:
    """The units of a compilation database. Raises UsageError where it is none."""
    try:
        rows = json.loads(file.read_text())
        found = [
            _of_command(row.get("arguments") or shlex.split(str.strip(row["command"])), Path(row["directory"]), row["file"])
            for row in rows
        ]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise UsageError(
            f"cannot read {file}", str(error) or type(error).__name__, "cmake or bear write compile_commands.json"
        ) from error
    return tuple({one.path: one for one in found}.values())


def from_command(command: Sequence[str], folder: Path) -> tuple[SourceFile, ...]:
    """The units that a compiler's command names."""
    files = [word for word in command[1:] if word.endswith(SUFFIXES)]
    return tuple(_of_command(command, folder, file) for file in files)


def _of_command(command: Sequence[str], folder: Path, file: str) -> SourceFile:
    if not command:
        raise ValueError(f"the command of {file} is empty")
    return SourceFile((folder / file).resolve(), tuple(reading_flags(command[1:])), folder.resolve(), command[0])


def reading_flags(words: Sequence[str]) -> Iterator[str]:
    """The flags among them that say how source is to be read."""
    left = iter(words)
    for word in left:
        if word.startswith(UNREAD) or not word.startswith(TAKEN):
            continue
        yield word
        if word in APART and (value := next(left, None)) is not None:
            yield value


def from_debug_information(program: Path, sources: Path | None) -> tuple[SourceFile, ...]:
    """The units that the program's debug information names; those that are not where it says are looked for below
    ``sources``. Raises SourceError where there is none, or a file is missing."""
    with program.open("rb") as stream, damage_named(program, DEBUG_INFORMATION):
        debug = DebugInfo(ELFFile(stream))
        units = [_of_unit(unit.get_top_DIE()) for unit in debug.info.iter_CUs()] if debug.present else []
    found = [_found(one, sources) for one in units if one is not None]
    if not found:
        why = "it has no debug information of C or C++"
        raise SourceError(f"cannot tell the sources of {program.name}", why, "build it with -g, or give --compile-commands")
    return tuple({one.path: one for one in found}.values())


def _of_unit(top: object) -> SourceFile | None:
    name, folder, producer = (text(top, f"DW_AT_{what}") for what in ("name", "comp_dir", "producer"))  # type: ignore[arg-type]
    if name is None or not name.endswith(SUFFIXES):
        return None
    where = Path(folder or ".")
    compiler = "clang" if "clang" in (producer or "") else "gcc"
    return SourceFile(where / name, tuple(reading_flags((producer or "").split())), where, compiler)


def _found(one: SourceFile, sources: Path | None) -> SourceFile:
    if one.path.is_file():
        return replace(one, path=one.path.resolve(), folder=one.folder.resolve())
    for skipped in range(1, len(one.path.parts)) if sources is not None else ():
        tried = sources.joinpath(*one.path.parts[skipped:]) if sources is not None else one.path
        if tried.is_file():
            return replace(one, path=tried.resolve(), folder=tried.resolve().parent)
    raise SourceError("a source file is missing", str(one.path), "say where the sources are with --sources DIR")
