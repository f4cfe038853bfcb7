"""Kernel source without macros and conditions, so that what follows sees every access; lines are told as in the source."""

from __future__ import annotations

import re
import shlex
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from layout_advise.errors import MachineError, SourceError

_MARKER = re.compile(r'# (\d+) "((?:[^"\\]|\\.)*)"')
_DEFAULT_VERSION = 120
"""OpenCL C that a device compiles where the options name none (OpenCL 1.2, section 5.6.4.5)."""


@dataclass(frozen=True, slots=True)
class PlainSource:
    """Source after the preprocessor; ``lines[k]`` is where its line k+1 stands in the program's own source."""

    text: str
    lines: tuple[int, ...]
    options: tuple[str, ...]
    """The build options that are left: all but definitions and include folders."""

    def line(self, number: int) -> int:
        """The line of the program's source that line ``number`` of the plain one comes from."""
        return self.lines[number - 1] if 0 < number <= len(self.lines) else number


def plain(source: str, options: str = "", name: str = "kernel.cl") -> PlainSource:
    """Runs the preprocessor with the definitions among the build ``options``. Raises SourceError with what it says."""
    macros, rest = _split(options)
    version = _version(rest)
    command = ["gcc", "-E", "-undef", "-x", "c", "-w", *macros, *_predefined(version), "-"]
    try:
        with tempfile.TemporaryDirectory(prefix="layout-advise-") as empty:  # where it is run headers are looked for
            done = subprocess.run(command, input=source, capture_output=True, text=True, check=False, cwd=empty)
    except OSError as error:
        raise MachineError("cannot read kernels", "gcc, whose preprocessor is used, is missing", "install gcc") from error
    if done.returncode:
        said = next((line for line in done.stderr.splitlines() if "error" in line), done.stderr.strip())
        raise SourceError(f"cannot read {name}", said.replace("<stdin>", name), "give its build options")
    return _without_markers(done.stdout, rest)


def _split(options: str) -> tuple[list[str], tuple[str, ...]]:
    """Options for the preprocessor, include folders absolute, and the others."""
    macros: list[str] = []
    rest: list[str] = []
    words = iter(shlex.split(options))
    for word in words:
        if word[:2] in ("-D", "-I", "-U"):
            value = word[2:] or next(words, "")
            macros.append(word[:2] + (str(Path(value).resolve()) if word[1] == "I" else value))
        else:
            rest.append(word)
    return macros, tuple(rest)


def _version(options: Sequence[str]) -> int:
    found = [re.fullmatch(r"-cl-std=CL(\d)\.(\d)", option) for option in options]
    return next((int(m[1]) * 100 + int(m[2]) * 10 for m in found if m), _DEFAULT_VERSION)


def _predefined(version: int) -> list[str]:
    known = [f"-DCL_VERSION_{n // 100}_{n // 10 % 10}={n}" for n in (100, 110, 120, 200)]
    return [f"-D__OPENCL_C_VERSION__={version}", "-D__OPENCL_VERSION__=120", "-D__ENDIAN_LITTLE__=1",
            "-Dcl_khr_fp64=1", "-Dcl_khr_global_int32_base_atomics=1", *known]  # fmt: skip


def _without_markers(text: str, options: tuple[str, ...]) -> PlainSource:
    kept: list[str] = []
    lines: list[int] = []
    number, own = 1, True
    for line in text.splitlines():
        marker = _MARKER.match(line)
        if marker is not None:
            number, own = int(marker[1]), marker[2] == "<stdin>"
            continue
        kept.append(line)
        lines.append(number if own else 0)
        number += 1
    return PlainSource("\n".join(kept) + "\n", tuple(lines), options)
