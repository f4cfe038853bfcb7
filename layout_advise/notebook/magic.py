"""The cell magic ``%%layout_advise``: C or C++ in a cell, compiled, traced, its report below.

``%load_ext layout_advise`` defines it::

    %%layout_advise --flags "-O3" --restores 5 -- 20000
    ... a program in C ...
"""

from __future__ import annotations

import argparse
import shlex
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from layout_advise.errors import MachineError, UsageError
from layout_advise.notebook.session import AdviceRun, trace_program

COMPILERS = {"c": "gcc", "c++": "g++"}


def options() -> argparse.ArgumentParser:
    """The words behind ``%%layout_advise``."""
    parser = argparse.ArgumentParser(prog="%%layout_advise", exit_on_error=False, add_help=False)
    parser.add_argument("--lang", choices=tuple(COMPILERS), default="c", help="the language of the cell")
    parser.add_argument("--flags", default="-O2", help="flags of the compiler, besides -g")
    parser.add_argument("--hotspot", help="the function to work on")
    parser.add_argument("--restores", type=int, help="processes to measure in")
    parser.add_argument("--budget", type=float, help="seconds for measuring")
    return parser


def advise_cell(line: str, cell: str) -> AdviceRun:
    """Compiles the cell, traces the program and returns the run, which shows its report. Words after ``--`` are arguments of
    the program. Raises UsageError for words that it does not know, MachineError where the compiler refuses the cell."""
    own, _, arguments = f" {line} ".partition(" -- ")
    try:
        chosen = options().parse_args(shlex.split(own))
    except (argparse.ArgumentError, SystemExit, ValueError) as error:
        raise UsageError("cannot read the words behind %%layout_advise", str(error)) from error
    folder = Path(tempfile.mkdtemp(prefix="layout-advise-"))
    source, program = folder / f"cell.{'c' if chosen.lang == 'c' else 'cpp'}", folder / "cell"
    source.write_text(cell)
    command = [COMPILERS[chosen.lang], "-g", *shlex.split(chosen.flags), "-o", str(program), str(source), "-lm"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise MachineError(f"cannot run {command[0]}", error.strerror or str(error), "see `layout-advise doctor`") from error
    if done.returncode:
        raise UsageError("the cell does not compile", done.stderr.strip()[-2000:])
    words = [str(program), *shlex.split(arguments)]
    return trace_program(
        words, folder / "cell.layout", hotspot=chosen.hotspot, restores=chosen.restores, budget=chosen.budget
    )


def load_ipython_extension(ipython: Any) -> None:
    """Called by ``%load_ext layout_advise``."""
    ipython.register_magic_function(advise_cell, "cell", "layout_advise")
