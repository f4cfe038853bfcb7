"""Changed files as the project has them formatted: by clang-format, where a ``.clang-format`` is in force."""

from __future__ import annotations

import difflib
import importlib.util
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

from layout_advise.apply.policy import APPLY
from layout_advise.apply.trees import SourceTree

STYLES = (".clang-format", "_clang-format")


def format_changed(tree: SourceTree, new: SourceTree, changed: Iterable[Path]) -> str:
    """Formats in the copy ``new`` what differs from ``tree`` in the files ``changed`` (paths in both): all of a file that is
    kept formatted, else the changed lines only. Returns why a file could not be, or nothing."""
    for path in changed:
        own = tree.root / path
        if not any((folder / style).is_file() for folder in own.parents for style in STYLES):
            continue
        if (tool := _tool()) is None:
            return "clang-format is missing (pip install 'layout-advise[apply]')"
        old, text = own.read_bytes(), (new.root / path).read_bytes()
        kept = _formatted(tool, own, old)
        ranges = _ranges(old, text)
        if not isinstance(kept, str) and ranges:  # without any, all of the file would be formatted
            kept = _formatted(tool, own, text, () if kept == old else ranges)
        if isinstance(kept, str):
            return kept
        if ranges:
            (new.root / path).write_bytes(kept)
    return ""


def _tool() -> str | None:
    """The clang-format of the machine, which the project may be formatted by, else that of the Python package."""
    if (found := shutil.which("clang-format")) is not None:
        return found
    package = importlib.util.find_spec("clang_format")
    binary = Path(package.origin).parent / "data" / "bin" / "clang-format" if package and package.origin else None
    return str(binary) if binary is not None and binary.is_file() else None


def _formatted(tool: str, path: Path, text: bytes, ranges: Sequence[tuple[int, int]] = ()) -> bytes | str:
    """``text`` formatted as the file ``path`` has to be, in these ranges of lines (none: everywhere), or why it is not."""
    lines = [f"--lines={first}:{last}" for first, last in ranges]
    command = [tool, "--style=file", "--fallback-style=none", f"--assume-filename={path}", *lines]
    try:
        done = subprocess.run(command, input=text, capture_output=True, timeout=APPLY.format_seconds, check=False)
    except subprocess.TimeoutExpired:
        return f"clang-format does not end on {path.name} ({APPLY.format_seconds:.0f} s)"
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        return said[0] if said else f"clang-format ended with {done.returncode} on {path.name}"
    return done.stdout


def _ranges(old: bytes, new: bytes) -> list[tuple[int, int]]:
    """The first and last numbers of the lines of ``new`` that ``old`` does not have."""
    matcher = difflib.SequenceMatcher(None, old.splitlines(keepends=True), new.splitlines(keepends=True), autojunk=False)
    return [(start + 1, end) for tag, _, _, start, end in matcher.get_opcodes() if tag != "equal" and end > start]
