"""Copies of a source tree: made, built by the project's own command, and their program run."""

from __future__ import annotations

import difflib
import os
import shutil
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from layout_advise.apply.policy import APPLY
from layout_advise.errors import ProgramError, SourceError


@dataclass(frozen=True, slots=True)
class SourceTree:
    """A tree at ``root``. ``program`` and ``cwd`` are paths in it, from its root; ``build`` is a shell command run in
    ``cwd``."""

    root: Path
    program: Path
    cwd: Path
    build: str

    def at(self, root: Path) -> SourceTree:
        """The same tree elsewhere."""
        return SourceTree(root, self.program, self.cwd, self.build.replace(str(self.root), str(root)))


def copied(tree: SourceTree, to: Path) -> SourceTree:
    """A copy of the tree, without run directories and the history. Raises SourceError where it is too large."""
    size = sum(f.stat().st_size for f in tree.root.rglob("*") if f.is_file() and ".git" not in f.parts)
    if size > APPLY.largest_tree:
        raise SourceError(f"will not copy {tree.root}", f"it has {size / 1e9:.1f} GB", "name a smaller tree with --sources")
    shutil.copytree(tree.root, to, symlinks=True, ignore=shutil.ignore_patterns(".git", "*.layout", ".venv", ".tools"))
    return tree.at(to)


def built(tree: SourceTree) -> Path:
    """Builds the tree's program anew. Raises SourceError where that fails or leaves no program."""
    program = tree.root / tree.program
    program.unlink(missing_ok=True)
    try:
        done = subprocess.run(
            tree.build,
            shell=True,
            cwd=tree.root / tree.cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=APPLY.build_seconds,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise SourceError("the build does not end", f"{APPLY.build_seconds:.0f} s", "") from error
    if done.returncode:
        shown = " ".join(line for line in done.stdout.splitlines() if "error" in line.lower()) or done.stdout
        raise SourceError("the changed source does not build", shown[: APPLY.shown_output], "nothing was changed")
    if not program.is_file():
        raise SourceError(
            "the build wrote no program", f"no {tree.program} in the copy of the tree", "give the whole command with --build"
        )
    return program


@dataclass(frozen=True, slots=True)
class ProgramRun:
    """Output and end of one run, and its wall time in seconds."""

    output: bytes
    status: int
    seconds: float


def run(tree: SourceTree, arguments: Sequence[str]) -> ProgramRun:
    """Runs the tree's program to its end. Raises ProgramError where it does not end."""
    command = [str(tree.root / tree.program), *arguments]
    begun = time.monotonic()
    try:
        done = subprocess.run(
            command,
            cwd=tree.root / tree.cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=APPLY.run_seconds,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise ProgramError(f"{command[0]} does not end", f"{APPLY.run_seconds:.0f} s", "give it less work") from error
    return ProgramRun(done.stdout, done.returncode, time.monotonic() - begun)


def difference(one: ProgramRun, other: ProgramRun) -> str:
    """What differs between two runs: ``exit status 0 and 1``, or the first line; empty where nothing does."""
    if one.status != other.status:
        return f"exit status {one.status} and {other.status}"
    if one.output == other.output:
        return ""
    lines = [run.output.decode(errors="replace").splitlines() for run in (one, other)]
    for number, (a, b) in enumerate(zip(*lines, strict=False), 1):
        if a != b:
            return f"line {number} of the output: {a[:60]!r} and {b[:60]!r}"
    return f"{len(lines[0])} and {len(lines[1])} lines of output"


def patch(tree: SourceTree, new: SourceTree, changed: Sequence[Path]) -> str:
    """The changes of files (paths in the tree) as ``git apply`` takes them."""
    parts: list[str] = []
    for path in sorted(changed):
        before, after = (_lines(root / path) for root in (tree.root, new.root))
        for line in difflib.unified_diff(before, after, f"a/{path}", f"b/{path}"):
            parts.append(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n")
    return "".join(parts)


def _lines(path: Path) -> list[str]:
    """The lines of a file, each with its end; bytes become letters one by one, as patches are of bytes."""
    with path.open("rb") as stream:
        return [line.decode("latin-1") for line in stream]


def dirty(root: Path) -> str:
    """A changed file of the git tree that holds ``root``; empty where there is none, or no git tree."""
    git = shutil.which("git")
    if git is None:
        return ""
    command = [git, "status", "--porcelain", "--untracked-files=no", "--", "."]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False, env={**os.environ, "LC_ALL": "C"})
    return done.stdout[3:].splitlines()[0] if done.returncode == 0 and done.stdout.strip() else ""
