"""The compiler that made a piece of code, and the flags with which a mock-up is comparable with it."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

from layout_advise.tracer.program.extensions import extension_flags

# Switches that say where things are or what goes into the object file, not how a loop is compiled.
_NOT_ABOUT_CODE = re.compile(
    r"-f(pre-include|intrinsic-modules|module|debug|file-prefix|macro-prefix|profile|auto-profile|sanitize|stack-protector|"
    r"stack-clash|cf-protection|lto|fat-lto|no-fat-lto|offload|openmp|openacc|diagnostics|dump|plugin|visibility|pic|PIC|pie|PIE|"
    r"record|verbose-asm|report-bug|message-length|working-directory|test-coverage|use-linker-plugin|asynchronous-unwind|"
    r"no-asynchronous-unwind|exceptions|no-exceptions|rtti|no-rtti|syntax-only|instrument|patchable|split-stack)"
)
_KEPT = re.compile(r"-(O(\d|s|z|g|fast)?|m[\w.=+-]+|f[\w.=+-]+|-param[= ]\S+)$")
_MODELS = re.compile(
    r"-m(cmodel=|32$|64$|x32$|no-vzeroupper|fentry|record-mcount|nop-mcount|indirect-branch|function-return)"
)


@dataclass(frozen=True, slots=True)
class Compiler:
    """``executable`` (``None``: not on this machine, ``why`` says so) with ``flags`` compiles C like the producer did.

    ``family`` is ``gcc``, ``clang`` or ``other``; ``recorded`` tells whether the flags come from the debug information;
    where they do not, they are ``-O2`` and the vector extensions seen in the code (:mod:`.extensions`).
    """

    family: str
    version: str
    executable: str | None
    flags: tuple[str, ...]
    recorded: bool
    why: str = ""


def compiler(producer: str | None, code: Iterable[bytes] = (), unit: Iterable[bytes] = ()) -> Compiler:
    """The C compiler and flags for code with this ``DW_AT_producer``; ``code`` are the machine code ranges of the region,
    ``unit`` those of its whole compile unit where they are known.

    gcc records its options in ``DW_AT_producer``; clang does so only with ``-grecord-command-line``. A gfortran or g++
    producer gives gcc of the same version with the options that C understands. Never an instruction set wider than the
    producer's: without recorded options it is what the instructions of the unit use, and what comes with that.
    """
    text = producer or ""
    family, version = _family(text)
    executable = _executable(family, version)
    recorded = tuple(_options(text))
    if not any(f.startswith(("-O", "-m")) for f in recorded):
        flags, known = ("-O2", *extension_flags(code, unit)), False
    else:
        optimised = any(f.startswith("-O") for f in recorded)
        flags, known = (recorded if optimised else ("-O0", *recorded)), True
    why = ""
    if family == "other":
        name = text.split(" -")[0] or "no compiler (there is no debug information)"
        executable, why = _executable("gcc", ""), f"the code names {name} as its compiler: gcc stands in"
    elif executable is None:
        why = f"{family} {version} made the program and is not on this machine"
    return Compiler(family, version, executable, understood(executable, flags) if executable else flags, known, why)


def _family(text: str) -> tuple[str, str]:
    version = re.search(r"\b(\d+\.\d+(\.\d+)?)", text)
    number = version.group(1) if version else ""
    if "clang" in text or "flang" in text:
        return "clang", number
    if text.startswith("GNU ") and not text.startswith(("GNU AS", "GNU Go")):
        return "gcc", number
    return "other", number


def _executable(family: str, version: str) -> str | None:
    """The compiler of the same major version where there is one, else the default one of the family."""
    names = {"gcc": "gcc", "clang": "clang"}
    if family not in names:
        return None
    major = version.split(".")[0]
    return shutil.which(f"{names[family]}-{major}") or shutil.which(names[family])


def _options(text: str) -> Iterable[str]:
    words = text.split()
    for position, word in enumerate(words):
        if word == "--param" and position + 1 < len(words):
            word = f"--param={words[position + 1]}"
        if _KEPT.match(word) and not _NOT_ABOUT_CODE.match(word) and not _MODELS.match(word):
            yield word


@cache
def understood(executable: str, flags: tuple[str, ...]) -> tuple[str, ...]:
    """Those of ``flags`` that the compiler takes for C without a complaint (Fortran and C++ have some of their own)."""
    if _compiles(executable, flags):
        return flags
    return tuple(flag for flag in flags if _compiles(executable, (flag,)))


def _compiles(executable: str, flags: Sequence[str]) -> bool:
    command = [executable, *flags, "-Werror", "-x", "c", "-fsyntax-only", "-"]
    return subprocess.run(command, input=b"", capture_output=True, check=False).returncode == 0
