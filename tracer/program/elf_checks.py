"""Refusing, by name, the files that cannot be analysed.

pyelftools checks little of what it reads: besides errors of its own, damaged input makes it raise whatever its code runs
into. What was raised inside of it is the file's fault; what was raised elsewhere is left alone.
"""

from __future__ import annotations

import contextlib
import functools
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, ParamSpec, TypeVar

from elftools.common.exceptions import DWARFError, ELFError
from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile

from layout_advise.errors import BinaryError, LayoutAdviseError

DEBUG_INFORMATION = "its debug information"
"""What is damaged, in the words of an error."""

_P = ParamSpec("_P")
_R = TypeVar("_R")
_S = TypeVar("_S")
_MACHINES = {0x03: "32-bit x86", 0x28: "ARM", 0xB7: "AArch64", 0xF3: "RISC-V", 0x15: "POWER", 0x16: "S/390", 0x08: "MIPS"}


def check_file(path: Path) -> None:
    """Raise :class:`BinaryError` unless ``path`` is a readable regular file with execute permission and no setuid bit."""
    try:
        status = path.stat()
    except FileNotFoundError:
        raise BinaryError(f"cannot open {path}", "there is no such file", "give the path of a compiled program") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise BinaryError(f"cannot open {path}", reason, "check the path and its permissions") from None
    if stat.S_ISDIR(status.st_mode):
        raise BinaryError(f"cannot analyse {path}", "it is a directory", "give the path of a compiled program")
    if not stat.S_ISREG(status.st_mode):
        raise BinaryError(f"cannot analyse {path}", "it is no regular file", "give the path of a compiled program")
    if status.st_mode & (stat.S_ISUID | stat.S_ISGID):
        bit = "setuid" if status.st_mode & stat.S_ISUID else "setgid"
        why = f"it is {bit}, and the loader ignores preloaded libraries in such programs"
        raise BinaryError(f"cannot analyse {path}", why, f"make a copy without the {bit} bit and analyse that")
    if not os.access(path, os.R_OK):
        raise BinaryError(f"cannot read {path}", "permission denied", f"chmod +r {path}")


def check_executable(path: Path) -> None:
    """Raise :class:`BinaryError` unless ``path`` may be executed."""
    if not os.access(path, os.X_OK):
        raise BinaryError(f"cannot run {path}", "it is not executable", f"chmod +x {path}")


def check_header(path: Path, head: bytes) -> None:
    """Raise :class:`BinaryError` unless ``head`` (the file's first 64 bytes) starts a 64-bit x86 program or library."""
    if head[:2] == b"#!":
        interpreter = head[2:].split(b"\n")[0].decode("utf-8", "replace").strip() or "an interpreter"
        hint = "give the compiled program that the script starts"
        raise BinaryError(f"cannot analyse {path}", f"it is a script for {interpreter}, not a compiled program", hint)
    if not head:
        raise BinaryError(f"cannot analyse {path}", "the file is empty", "give the path of a compiled program")
    if head[:4] != b"\x7fELF":
        raise BinaryError(f"cannot analyse {path}", "it is not an ELF file", "give the path of a compiled Linux program")
    machine = int.from_bytes(head[18:20], "little" if head[5:6] == b"\x01" else "big")
    if machine != 0x3E:
        name = _MACHINES.get(machine, f"machine number {machine}")
        raise BinaryError(
            f"cannot analyse {path}", f"it is built for {name}", "only x86-64 programs are analysed: build for it"
        )
    if head[4:5] != b"\x02":
        raise BinaryError(f"cannot analyse {path}", "it is a 32-bit program", "rebuild it with -m64")
    kind = int.from_bytes(head[16:18], "little")
    if kind not in (2, 3):
        name = {1: "an object file, not linked yet", 4: "a core dump"}.get(kind, f"an ELF file of type {kind}")
        raise BinaryError(f"cannot analyse {path}", f"it is {name}", "give the path of a linked program")


def raised_by_reader(error: BaseException) -> bool:
    """Tells whether an error was raised inside of pyelftools."""
    if isinstance(error, (ELFError, DWARFError)):
        return True
    at = error.__traceback__
    while at is not None and at.tb_next is not None:
        at = at.tb_next
    return at is not None and str(at.tb_frame.f_globals.get("__name__", "")).startswith("elftools")


@contextlib.contextmanager
def damage_named(path: str | os.PathLike[str], what: str = "it") -> Iterator[None]:
    """Raises :class:`BinaryError` for errors of pyelftools; ``what`` of the file was read."""
    try:
        yield
    except (LayoutAdviseError, MemoryError):
        raise
    except Exception as error:
        if not raised_by_reader(error):
            raise
        why = " ".join(f"{what} is damaged ({str(error)[:200] or type(error).__name__})".split())
        raise BinaryError(f"cannot analyse {path}", why, "link it again") from None


def naming_damage(read: Callable[_P, _R]) -> Callable[_P, _R]:
    """A method of an object with a ``path`` that raises :class:`BinaryError` where the file is damaged."""

    @functools.wraps(read)
    def named(*words: _P.args, **named: _P.kwargs) -> _R:
        with damage_named(getattr(words[0], "path", "the program")):
            return read(*words, **named)

    return named


def without_damaged(none: _S) -> Callable[[Callable[_P, _R]], Callable[_P, _R | _S]]:
    """A function that returns ``none`` where what it reads is damaged: a line or a name that is then not known."""

    def wrapped(read: Callable[_P, _R]) -> Callable[_P, _R | _S]:
        @functools.wraps(read)
        def tolerant(*words: _P.args, **named: _P.kwargs) -> _R | _S:
            try:
                return read(*words, **named)
            except LayoutAdviseError:
                raise
            except Exception as error:
                if not raised_by_reader(error):
                    raise
                return none

        return tolerant

    return wrapped


def parse(path: Path, stream: BinaryIO) -> ELFFile:
    """The file's ELF structure; :class:`BinaryError` where it is damaged."""
    with damage_named(path, "the ELF file"):
        elf = ELFFile(stream)
        size = path.stat().st_size
        for section in elf.iter_sections():
            if section["sh_type"] != "SHT_NOBITS" and section["sh_offset"] + section["sh_size"] > size:
                raise ELFError(f"section {section.name} reaches beyond the end of the file")
        if any(s["p_type"] == "PT_LOAD" and s["p_offset"] + s["p_filesz"] > size for s in elf.iter_segments()):
            raise ELFError("a segment reaches beyond the end of the file")
    return elf


def check_dynamic(path: Path, elf: ELFFile, static: bool = False) -> None:
    """Raise :class:`BinaryError` for bare shared libraries, and for static programs unless ``static`` allows them."""
    with damage_named(path, "the ELF file"):
        kinds = {segment["p_type"] for segment in elf.iter_segments()}
        if "PT_INTERP" in kinds:
            return
        dynamic = elf.get_section_by_name(".dynamic")
        pie = isinstance(dynamic, DynamicSection) and any(
            tag["d_tag"] == "DT_FLAGS_1" and tag["d_val"] & 0x08000000 for tag in dynamic.iter_tags()
        )
    if elf["e_type"] == "ET_DYN" and not pie:
        raise BinaryError(f"cannot run {path}", "it is a shared library", "give a program that uses it")
    if static:
        return
    why = "it is linked statically, and the agent is a preloaded library"
    hint = "link it without -static; traced alone it can be with --backend valgrind --until trace --hotspot SYMBOL"
    raise BinaryError(f"cannot analyse {path}", why, hint)
