"""Shared parts of the commands: output options, colours, the JSON switch."""

from __future__ import annotations

import argparse
import os
import stat
import sys
from pathlib import Path
from typing import TextIO

from layout_advise.errors import RunDirError, UsageError
from layout_advise.reports.exports.notes import github_lines
from layout_advise.reports.model.contract import Report, encode
from layout_advise.reports.model.hotspot import HotspotReport
from layout_advise.reports.pages import terminal
from layout_advise.reports.pages.console import styled
from layout_advise.reports.words.brief_names import readable
from layout_advise.reports.words.headline import headline
from layout_advise.reports.words.plan_words import leading


def add_output(parser: argparse.ArgumentParser) -> None:
    """``--json FILE`` (``-`` for stdout), ``-q``, ``-v``, ``--color``."""
    parser.add_argument(
        "--json", metavar="FILE", help="also write the report as JSON to FILE ('-': stdout, nothing else there)"
    )
    parser.add_argument(
        "--no-source", action="store_true", help="leave code, arguments and paths of the program out of what is written"
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="only the verdict and errors")
    parser.add_argument("-v", "--verbose", action="store_true", help="more detail")
    parser.add_argument("--color", choices=("auto", "always", "never"), default="auto", help="colours (default: auto)")


def add_all(parser: argparse.ArgumentParser) -> None:
    """``--all``."""
    parser.add_argument(
        "--all",
        action="store_true",
        help="tables of every region, not of the hottest one alone, and long names whole",
    )


FAIL_ON_REACHED = 3
"""The exit code of a gate that was reached."""


def add_fail_on(parser: argparse.ArgumentParser) -> None:
    """``--fail-on SPEEDUP``."""
    parser.add_argument(
        "--fail-on", type=float, metavar="SPEEDUP", help="exit with 3 when a change of at least this speedup is advised"
    )


def advised(report: Report, least: float | None) -> list[HotspotReport]:
    """The regions for which a change of at least that speedup is advised; none without a limit."""
    if least is None:
        return []
    return [h for h in report.hotspots if h.verdict.action == "change" and (h.verdict.gain or 0) >= least]


def wants_colour(choice: str) -> bool:
    """Colours on a terminal only, unless asked for; NO_COLOR and TERM=dumb are honoured."""
    if choice != "auto":
        return choice == "always"
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def width() -> int:
    """Columns of the terminal; 110 when piped."""
    try:
        return max(80, os.get_terminal_size(sys.stdout.fileno()).columns)
    except OSError:
        return int(os.environ.get("COLUMNS", "110")) if os.environ.get("COLUMNS", "110").isdigit() else 110


def written() -> int | None:
    """The bytes of the file that stdout is, up to where it is written next; None where it is no file."""
    try:
        return os.lseek(1, 0, os.SEEK_CUR) if stat.S_ISREG(os.fstat(1).st_mode) else None
    except OSError:  # closed
        return None


def show(report: Report, arguments: argparse.Namespace, run: Path, to: TextIO | None = None) -> None:
    """Print the report of a run directory as the options say, on stdout or ``to``; the verdict to stderr where stdout is for
    JSON."""
    to = to or sys.stdout
    if arguments.json == "-":
        sys.stdout.write(encode(report).decode())
        print(*_answers(report), sep="\n", file=sys.stderr)
        return
    if arguments.json:
        try:
            Path(arguments.json).write_bytes(encode(report))
        except OSError as error:
            raise RunDirError(f"cannot write {arguments.json}", error.strerror or str(error)) from error
    if arguments.quiet:
        print(*_answers(report), sep="\n", file=to)
        return
    styled(to).write(text(report, arguments, run))
    if os.environ.get("GITHUB_ACTIONS") == "true":
        print("\n".join(github_lines(report, os.environ.get("GITHUB_WORKSPACE", ""))), file=sys.stderr)


def _answers(report: Report) -> list[str]:
    """A line for the whole program, where several regions were studied, then one for each region."""
    report = readable(report)
    plan = report.plan
    return [*([leading(plan)] if plan is not None else []), *(headline(hotspot) for hotspot in report.hotspots)]


def text(report: Report, arguments: argparse.Namespace, run: Path) -> str:
    """The report of a run directory as it is printed."""
    colour, verbose = wants_colour(arguments.color), arguments.verbose
    whole = arguments.all
    return terminal.render(report, width=width(), colour=colour, verbose=verbose, whole=whole, run=str(run))


def existing(path: str) -> Path:
    """A path that must exist."""
    found = Path(path)
    if not found.exists():
        raise UsageError(f"no such file or folder: {path}")
    return found
