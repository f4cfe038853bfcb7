"""Finds the installed Valgrind, and checks that our tool can be built against it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from layout_advise.errors import MachineError

OLDEST = (3, 19)
"""The oldest Valgrind that the tool was run with."""

PLATFORM = "amd64-linux"
_HINT = "apt-get install valgrind (Debian's package has the headers), or trace with --backend clone"
_FOLDERS = ("lib/valgrind", "libexec/valgrind", "lib64/valgrind", "lib/x86_64-linux-gnu/valgrind")


@dataclass(frozen=True, slots=True)
class Valgrind:
    """An installed Valgrind. ``support`` holds what every tool needs at run time, ``libraries`` what it is linked with."""

    launcher: Path
    version: str
    headers: Path
    libraries: Path
    support: Path


def find_valgrind() -> Valgrind:
    """The Valgrind in ``LAYOUT_ADVISE_VALGRIND`` or in ``PATH``. Raises :class:`MachineError`: none, too old, no headers."""
    name = os.environ.get("LAYOUT_ADVISE_VALGRIND", "valgrind")
    found = shutil.which(name)
    if found is None:
        raise MachineError("cannot trace under Valgrind", f"{name} was not found", _HINT)
    launcher = _launcher(Path(found))
    version = _version(launcher)
    prefix = launcher.resolve().parent.parent
    headers = prefix / "include" / "valgrind"
    libraries = _holding(prefix, f"libcoregrind-{PLATFORM}.a")
    if not (headers / "pub_tool_tooliface.h").is_file() or libraries is None:
        what = "its headers" if libraries is not None else "its libraries"
        raise MachineError("cannot build the Valgrind tool", f"Valgrind {version} in {prefix} came without {what}", _HINT)
    support = _holding(prefix, f"vgpreload_core-{PLATFORM}.so")
    if support is None:
        why = f"Valgrind {version} in {prefix} does not run 64-bit programs"
        raise MachineError("cannot trace under Valgrind", why, _HINT)
    return Valgrind(launcher, version, headers, libraries, support)


def _launcher(found: Path) -> Path:
    """Debian's ``valgrind`` is a script that changes the environment of the program; the real one stands beside it."""
    real = found.with_name(found.name + ".bin")
    return real if real.exists() else found


def _version(launcher: Path) -> str:
    try:
        text = subprocess.run([launcher, "--version"], capture_output=True, text=True, timeout=20, check=True).stdout
    except (OSError, subprocess.SubprocessError) as error:
        raise MachineError("cannot trace under Valgrind", f"{launcher} does not run: {error}", _HINT) from error
    match = re.search(r"(\d+)\.(\d+)(\.\d+)?\S*", text)
    if match is None:
        raise MachineError("cannot trace under Valgrind", f"{launcher} does not tell its version: {text.strip()!r}", _HINT)
    if (int(match[1]), int(match[2])) < OLDEST:
        oldest = ".".join(map(str, OLDEST))
        raise MachineError("cannot trace under Valgrind", f"version {match[0]} is too old: {oldest} is needed", _HINT)
    return match[0]


def _holding(prefix: Path, file: str) -> Path | None:
    return next((prefix / f for f in _FOLDERS if (prefix / f / file).is_file()), None)
