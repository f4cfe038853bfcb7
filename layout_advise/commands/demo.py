"""Advise an example that comes with layout-advise.

  layout-advise demo                 an array of structures of which three fields of ten are used; about a minute
  layout-advise demo wave            a reaction-diffusion solver, four fields in one array
  layout-advise demo --recorded      nothing is run: the report of a run of the demo that was recorded elsewhere

The example's source is copied to a folder beside the run directory and compiled there; then it does what
`layout-advise trace` does.
"""

from __future__ import annotations

import argparse
import io
import shutil
import subprocess
import sys
import zipfile
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from layout_advise.commands import common, trace
from layout_advise.errors import MachineError, RunDirError
from layout_advise.reports.model.contract import read_report
from layout_advise.reports.pages import html

EXAMPLES = ("particles", "wave")
SHARED = "common.h"
FLAGS = ("-std=c11", "-g", "-O2")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``demo``."""
    parser.add_argument("example", metavar="EXAMPLE", nargs="?", choices=EXAMPLES, default=EXAMPLES[0], help="which one")
    parser.add_argument("-o", "--output", metavar="DIR", default="demo.layout", help="run directory (default: demo.layout)")
    parser.add_argument("--recorded", action="store_true", help="copy the recorded run there and print its report")
    common.add_output(parser)
    common.add_all(parser)


def shipped() -> Traversable:
    """The folder of the examples: in a checkout the one that all are in, in a wheel the few that it holds."""
    return files("layout_advise") / "examples"


def build(name: str, folder: Path) -> Path:
    """Copy an example into ``folder`` and compile it there, with a makefile to do so again; returns the program.

    Raises :class:`MachineError` where there is no compiler or it fails, :class:`RunDirError` where nothing can be written.
    """
    if shutil.which("gcc") is None:
        raise MachineError("cannot compile the example", "gcc is not there", "run `layout-advise doctor --install`")
    source = f"{name}.c"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        text = (shipped() / name / source).read_text()
        (folder / source).write_text(text.replace(f'"../{SHARED}"', f'"{SHARED}"'))
        (folder / SHARED).write_text((shipped() / SHARED).read_text())
        command = ["gcc", *FLAGS, "-o", name, source, "-lm"]
        (folder / "Makefile").write_text(f"{name}: {source} {SHARED}\n\t{' '.join(command)}\n")
    except OSError as error:
        raise RunDirError(f"cannot write the example to {folder}", error.strerror or str(error)) from error
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        last = result.stderr.strip().splitlines()[-1:] or ["gcc failed"]
        raise MachineError("cannot compile the example", last[0], "run `layout-advise doctor`")
    return folder / name


def recorded(output: Path) -> None:
    """Unpack the recorded run, with its page. Raises :class:`RunDirError` where there is something already."""
    if output.exists():
        raise RunDirError(f"{output} is there already", "the recorded run is not written over it", "choose another -o")
    packed = zipfile.ZipFile(io.BytesIO((shipped() / "recorded" / "demo.zip").read_bytes()))
    try:
        packed.extractall(output)
        (output / "report.html").write_text(html.render(read_report(output), str(output.absolute())))
    except OSError as error:
        raise RunDirError(f"cannot write {output}", error.strerror or str(error)) from error


def run(arguments: argparse.Namespace) -> int:
    """Carry out ``demo``: what a user would type, on the example."""
    output = Path(arguments.output)
    if arguments.recorded:
        recorded(output)
        common.show(read_report(output), arguments, output)
        print(f"report: {output / 'report.html'}", file=sys.stderr)
        return 0
    program = build(arguments.example, output.with_suffix(".program"))
    parser = argparse.ArgumentParser()
    trace.add_arguments(parser)
    words = ["-f", "-o", arguments.output, *(["-q"] if arguments.quiet else []), *(["-v"] if arguments.verbose else [])]
    words += ["--no-source"] if arguments.no_source else []
    if arguments.json:
        words += ["--json", arguments.json]
    print(f"$ layout-advise trace -o {arguments.output} -- {program}", file=sys.stderr)
    return trace.run(parser.parse_args([*words, "--color", arguments.color, "--", str(program)]))
