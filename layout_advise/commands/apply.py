"""Rewrite C or C++ source for a layout that was measured, and check and time the result.

  layout-advise apply app.layout -o app.patch --build make
  layout-advise apply app.layout --candidate c4 --write --build make
  layout-advise apply app.layout -o app.patch --build 'cc -O2 -g -o app app.c'

The changed source is built by the project's own command in a copy of the tree and run on the same input; output and exit
status must be the original's. Then both are timed in turn, and what is achieved stands beside what was predicted. Where a
use of the type cannot be rewritten safely, file and line are told and nothing is changed.

exit code 3: the rewritten program is surely slower, and --write has changed no file.
"""

from __future__ import annotations

import argparse
import os
import shlex
import sys
import tempfile
from pathlib import Path

from layout_advise.apply import stage, trees, words
from layout_advise.apply.policy import APPLY
from layout_advise.apply.rewrite.parse import parse
from layout_advise.apply.sources import SUFFIXES, SourceFile, from_command, from_compile_commands, from_debug_information
from layout_advise.commands import common
from layout_advise.compare.applied import AppliedLayout, note
from layout_advise.errors import SourceError, UsageError
from layout_advise.reports.model.contract import Report, read_report
from layout_advise.reports.model.redact import LEFT_OUT
from layout_advise.reports.model.wanted import WantedLayout, wanted
from layout_advise.rundir import write_atomically

SLOWER = 3
"""The exit code where the rewritten program is slower."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``apply``."""
    parser.add_argument("run", metavar="RUN", help="a run directory, or a report.json")
    parser.add_argument("--candidate", metavar="ID", help="the layout (default: the advised one)")
    parser.add_argument("--sources", metavar="DIR", help="the source tree (default: the folder that all sources share)")
    parser.add_argument("--compile-commands", metavar="FILE", help="flags of the sources (default: from debug information)")
    parser.add_argument("-o", "--output", metavar="PATCH", help="write the patch to PATCH (default: standard output)")
    parser.add_argument(
        "--build", metavar="CMD", help="the project's own build command, for the shell, run in a copy of the tree"
    )
    parser.add_argument("--write", action="store_true", help="also change the files, after everything was checked")
    parser.add_argument("--guard", action="store_true", help="also assert the layout in the source (static_assert)")
    parser.add_argument(
        "--rounds",
        type=int,
        metavar="N",
        help="processes timed of each program (0: none; default: 5 and more, for a minute "
        "at most, until the interval is as narrow as the predicted one)",
    )


def _program(report: Report) -> Path:
    """The file of the program that was traced. Raises SourceError where it is not there, or its arguments are not known."""
    if LEFT_OUT in report.command:
        hint = "trace it again without --no-source"
        raise SourceError("cannot run the program as it was traced", "its arguments were left out of the report", hint)
    named = report.command[0] if report.command else report.binary.path
    try:
        places = (Path(named), Path(report.started_in or "", named))
        program = next((place for place in places if place.is_file()), places[0]).resolve()
        there = program.is_file()
    except ValueError:  # a zero byte
        program, there = Path(named), False
    if not there:
        raise SourceError("cannot read the program that was traced", f"no {program}", "build and trace it again")
    return program


def run(arguments: argparse.Namespace) -> int:
    """Carry out ``apply``."""
    report = read_report(common.existing(arguments.run))
    wanted(report, arguments.candidate)  # whether there is one is told before sources are read
    program = _program(report)
    sources = _sources(arguments, program)
    _check_sources(program, sources)
    tree = _tree(arguments, program, sources, report.started_in)
    _check(arguments, tree)
    layout, applied = _applied(arguments, report, sources, tree)
    patch = Path(arguments.output) if arguments.output else None
    if patch is not None:
        write_atomically(patch, applied.patch.encode("latin-1"))
    else:
        sys.stdout.flush()
        sys.stdout.buffer.write(applied.patch.encode("latin-1"))
    slower = applied.achieved is not None and applied.achieved.is_slower
    if arguments.write and not slower:
        stage.written(applied, tree.root)
    note(Path(arguments.run), AppliedLayout(layout.candidate.id, applied.references))
    print("\n".join(words.lines(layout, applied, patch)), file=sys.stdout if patch is not None else sys.stderr)
    return SLOWER if slower else 0


def _applied(
    arguments: argparse.Namespace, report: Report, sources: tuple[SourceFile, ...], tree: trees.SourceTree
) -> tuple[WantedLayout, stage.Applied]:
    """What came of the layout; where none is named, and places in the source stand in the way of one, of the next best one
    that surely gains. Raises the first one's error where there is no other."""
    refused: dict[str, stage.RefusedSourceError] = {}
    while len(refused) < APPLY.most_layouts:
        try:
            layout = wanted(report, arguments.candidate, {name: error.why for name, error in refused.items()})
        except SourceError:
            break
        request = stage.ApplyRequest(layout, sources, tree, report.command[1:], _rounds(arguments), arguments.guard)
        with tempfile.TemporaryDirectory(prefix="layout-advise-") as work:
            try:
                return layout, stage.apply(request, Path(work).resolve())
            except stage.RefusedSourceError as error:
                refused[layout.candidate.id] = error
        if arguments.candidate:
            break
    first = next(iter(refused.values()))
    print("\n".join(first.places), file=sys.stderr)
    raise first


def _rounds(arguments: argparse.Namespace) -> int | None:
    return None if arguments.rounds is None else max(0, arguments.rounds)


def _sources(arguments: argparse.Namespace, program: Path) -> tuple[SourceFile, ...]:
    if arguments.compile_commands:
        return from_compile_commands(common.existing(arguments.compile_commands))
    words = (arguments.build or "").split()
    if any(word.endswith(SUFFIXES) for word in words):
        return from_command(shlex.split(arguments.build), Path.cwd())
    return from_debug_information(program, Path(arguments.sources).resolve() if arguments.sources else None)


def _tree(
    arguments: argparse.Namespace, program: Path, sources: tuple[SourceFile, ...], started_in: str | None
) -> trees.SourceTree:
    """The tree: what was named, else the folder that holds all sources and the program. Its commands are run in the present
    folder, where that is in the tree, else in the one that the program was traced in."""
    paths = [one.path for one in sources]
    if not arguments.sources:
        paths += [file for one in sources for file in parse(one.path, one.flags, one.folder).texts]
    root = (
        Path(arguments.sources).resolve()
        if arguments.sources
        else Path(os.path.commonpath([p.parent for p in (*paths, program)]))
    )
    build = arguments.build or ""
    if build and root not in program.parents:
        raise UsageError(f"{program} is not in {root}", "its copy could not be told from it", "name the tree with --sources")
    folders = (Path.cwd(), Path(started_in or root))
    inside = next((folder.relative_to(root) for folder in folders if folder.is_relative_to(root)), Path("."))
    return trees.SourceTree(
        root, program.relative_to(root) if root in program.parents else Path(program.name), inside, build
    )


def _check(arguments: argparse.Namespace, tree: trees.SourceTree) -> None:
    """Refuses to write what was not checked, or over changes that git does not have."""
    if arguments.write and not tree.build:
        raise UsageError("will not change files that were not built and run", "", "give the project's command with --build")
    if arguments.write and (file := trees.dirty(tree.root)):
        raise SourceError("the git tree is dirty", f"{file} is changed", "commit or stash it first")


def _check_sources(program: Path, sources: tuple[SourceFile, ...]) -> None:
    """Refuses sources that are not those of the program."""
    for one in sources:
        if not one.path.is_file():
            raise SourceError("a source file is missing", str(one.path), "say where the sources are with --sources DIR")
        if one.path.stat().st_mtime > program.stat().st_mtime:
            why = "it is not what was traced"
            raise SourceError(f"{one.path} is newer than {program.name}", why, "build and trace it again")
