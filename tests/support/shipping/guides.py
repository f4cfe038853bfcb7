"""Guides: pages of the documentation whose files and commands can be typed as they stand, from the first to the last."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

_FILE = re.compile(r"^```(?:c|cpp|fortran|toml)\n((?:/\*|//|!|#) ([\w.]+\.\w+)(?: \*/)?\n.*?)^```", re.MULTILINE | re.DOTALL)
_COMMANDS = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)
_OUTPUT = re.compile(r"^```text\n(.*?)^```", re.MULTILINE | re.DOTALL)
_FIGURE = re.compile(r"0x[0-9a-f]+|\d[\d,]*(?:\.\d+)?")
_EXIT_CODE = re.compile(r"# exit code (\d+)")
ELSEWHERE = (
    "dask ",
    "debootstrap ",
    "make dist",
    "pip ",
    "podman ",
    "tar -C base ",
    "layout-advise doctor --install",
    "layout-advise farm list.toml -o /",
)
"""What commands begin with that need a network, another machine, or change this one."""


def files(page: str) -> dict[str, str]:
    """The texts of the files that a page shows: blocks whose first line is a remark with the name."""
    return {name: text for text, name in _FILE.findall(page)}


def commands(page: str) -> list[str]:
    """The lines of its ``sh`` blocks that can be typed here."""
    lines = [line.strip() for block in _COMMANDS.findall(page) for line in block.splitlines()]
    return [line for line in lines if line and not line.startswith(("#", *ELSEWHERE))]


def not_printed(page: Path, printed: str) -> list[str]:
    """The lines of the page's ``text`` blocks that are not among what its commands printed; figures and blanks may differ.
    What was measured stands in ``none`` blocks, and is not looked at."""
    there = {_without_figures(line) for line in printed.splitlines()}
    shown = [line for block in _OUTPUT.findall(page.read_text()) for line in block.splitlines()]
    return [line for line in shown if _without_figures(line) not in there]


def _without_figures(line: str) -> str:
    return " ".join(_FIGURE.sub("#", line).split())


def script(lines: Sequence[str]) -> str:
    """One shell script of all commands, which ends where one has another exit code than its remark says (else 0)."""
    steps = []
    for line in lines:
        code = _EXIT_CODE.search(line)
        expected = code[1] if code else "0"
        steps.append(f"{line}\ncode=$?; [ $code = {expected} ] || {{ echo {shlex.quote(line)}: $code >&2; exit 1; }}\n")
    return "".join(steps)


def typed(page: Path, folder: Path, *wrapper: str) -> str:
    """What the commands of a page print when they are typed in ``folder``, all by one shell (started by ``wrapper``).

    Every command must have the exit code that the page says.
    """
    text = page.read_text()
    for name, content in files(text).items():
        (folder / name).write_text(content)
    # that of this environment, whichever the shell would find
    own = f'layout-advise() {{ {shlex.quote(sys.executable)} -m layout_advise "$@"; }}\n'
    done = subprocess.run(
        [*wrapper, "bash", "-c", own + script(commands(text))],
        cwd=folder,
        env={**os.environ, "GITHUB_ACTIONS": ""},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout
