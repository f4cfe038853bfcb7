"""Refusing, by name, the files that cannot be analysed."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import BinaryIO

from elftools.common.exceptions import ELFError
from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile

from layout_advise.errors import BinaryError

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


def parse(path: Path, stream: BinaryIO) -> ELFFile:
    """The file's ELF structure; :class:`BinaryError` where it is damaged."""
    try:
        elf = ELFFile(stream)
        for section in elf.iter_sections():
            end = section["sh_offset"] + section["sh_size"]
            if section["sh_type"] != "SHT_NOBITS" and end > path.stat().st_size:
                raise ELFError(f"section {section.name} reaches beyond the end of the file")
    except (ELFError, AssertionError, UnicodeDecodeError, IndexError, ValueError, AttributeError) as error:
        why = f"the ELF file is damaged ({error or type(error).__name__})"
        raise BinaryError(f"cannot analyse {path}", why, "link it again") from None
    return elf


def check_dynamic(path: Path, elf: ELFFile, static: bool = False) -> None:
    """Raise :class:`BinaryError` for bare shared libraries, and for static programs unless ``static`` allows them."""
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
