"""Advise a real example: an array of structures of which three fields of ten are used.

  layout-advise demo

It does what `layout-advise trace` does, on examples/particles; about a minute.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from pathlib import Path

from layout_advise.commands import common, trace
from layout_advise.errors import MachineError

EXAMPLE = "particles"
EXAMPLES = Path(__file__).resolve().parent.parent.parent / "examples"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``demo``."""
    parser.add_argument("-o", "--output", metavar="DIR", default="demo.layout", help="run directory (default: demo.layout)")
    common.add_output(parser)


def build(folder: Path) -> Path:
    """Compile the example; returns the program."""
    source = folder / EXAMPLE
    if not source.is_dir():
        raise MachineError("the examples are not here", f"{folder} does not exist", "run it in a checkout of layout-advise")
    if shutil.which("make") is None or shutil.which("gcc") is None:
        raise MachineError("cannot compile the example", "make and gcc are needed", "run `layout-advise doctor`")
    result = subprocess.run(["make", "-s", "-C", str(folder), EXAMPLE], capture_output=True, text=True, check=False)
    if result.returncode != 0:
        last = result.stderr.strip().splitlines()[-1:] or ["make failed"]
        raise MachineError("cannot compile the example", last[0])
    return source / "bin" / "O2" / EXAMPLE


def run(arguments: argparse.Namespace) -> int:
    """Carry out ``demo``: what a user would type, on the example."""
    program = build(EXAMPLES)
    parser = argparse.ArgumentParser()
    trace.add_arguments(parser)
    words = ["-f", "-o", arguments.output, *(["-q"] if arguments.quiet else []), *(["-v"] if arguments.verbose else [])]
    words += ["--no-source"] if arguments.no_source else []
    if arguments.json:
        words += ["--json", arguments.json]
    print(f"$ layout-advise trace -o {arguments.output} -- {program}", file=sys.stderr)
    return trace.run(parser.parse_args([*words, "--color", arguments.color, "--", str(program)]))
