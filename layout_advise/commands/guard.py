"""Write down the layout that a gain rests on, and hold every build against it.

  layout-advise guard app.layout -o layout.guard            write it: a small text file to review and commit
  layout-advise guard --check layout.guard -- ./app         exit code 3 and the member that moved
  layout-advise guard app.layout --baseline before.layout -o layout.guard   with what it gained over an earlier run
  layout-advise guard app.layout --measure -o layout.guard  with the times of the regions' calls
  layout-advise guard --check layout.guard --measure -- ./app its args   times them again

The file holds size and members of the records that the run's regions use, by byte. A check reads the build's debug
information alone (-g): it takes seconds, runs nothing, and does not mind other flags, another compiler or other code. A
shared library is checked by giving it for the program. With --measure the program runs with its arguments (standard input
is empty), and the exit code is also 3 where a region became slower than by a tenth, on the same kind of processor.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from msgspec.structs import replace

from layout_advise.commands import common
from layout_advise.compare.runs import compared
from layout_advise.errors import LayoutAdviseError, RunDirError, SourceError, UsageError
from layout_advise.guard.again import Again, measured_again, timed_calls
from layout_advise.guard.check import moved
from layout_advise.guard.from_run import written
from layout_advise.guard.guard_file import Guard, guard_text, read_guard
from layout_advise.guard.words import again_lines, check_lines
from layout_advise.machine import describe
from layout_advise.reports.model.contract import Report, read_report
from layout_advise.rundir import write_atomically
from layout_advise.tracer.program.binary import ElfBinary


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``guard``."""
    parser.add_argument(
        "words", metavar="RUN | -- PROGRAM ARGS", nargs="*", help="a run directory to guard; with --check the program"
    )
    parser.add_argument("--check", metavar="GUARD", help="hold a build against this file")
    parser.add_argument("--measure", action="store_true", help="time the regions' calls, too")
    parser.add_argument("-o", "--output", metavar="FILE", help="write the guard to FILE (default: standard output)")
    parser.add_argument("-f", "--force", action="store_true", help="replace FILE")
    parser.add_argument("--baseline", metavar="RUN", help="write down what the layout gained over this earlier run")
    parser.add_argument("--module", metavar="FILE", help="the library that the types are of (default: the program)")


def run(arguments: argparse.Namespace) -> int:
    """Carry out ``guard``."""
    if arguments.check:
        return _check(arguments)
    if len(arguments.words) != 1:
        raise UsageError("no run to guard", "", "write: layout-advise guard app.layout -o layout.guard")
    return _write(arguments)


def _check(arguments: argparse.Namespace) -> int:
    if not arguments.words:
        raise UsageError("no program to check", "", "write: layout-advise guard --check layout.guard -- ./app")
    if arguments.output:
        raise UsageError("-o does not go with --check", "a check writes nothing", "leave it out")
    guard = read_guard(common.existing(arguments.check))
    program = arguments.words[0]
    moves = moved(guard, ElfBinary.open_module(arguments.module or program))
    print("\n".join(check_lines(guard, program, moves)))
    again: tuple[Again, ...] = ()
    if arguments.measure:
        sys.stdout.flush()
        with tempfile.TemporaryDirectory(prefix="layout-advise-") as work:
            again = measured_again(guard, arguments.words, describe().cpu, Path(work), None)
        print("\n".join(again_lines(again)))
    return common.FAIL_ON_REACHED if moves or any(one.alarm for one in again) else 0


def _write(arguments: argparse.Namespace) -> int:
    output = Path(arguments.output) if arguments.output else None
    if output is not None and output.exists() and not arguments.force:
        raise RunDirError(f"{output} is there already", "", "replace it with -f, or write elsewhere")
    report = read_report(common.existing(arguments.words[0]))
    binary = _binary(report, arguments.module)
    done = written(report, binary)
    guard = _gained(done.guard, report, arguments.baseline) if arguments.baseline else done.guard
    guard = _timed(guard, report) if arguments.measure else guard
    for text in done.left_out:
        print(f"not guarded: {text}", file=sys.stderr)
    for hotspot in report.hotspots:
        if hotspot.verdict.action == "change":
            name = hotspot.name or hotspot.symbol
            print(f"{name}: the run advises another layout; this guards the present one", file=sys.stderr)
    if output is None:
        sys.stdout.write(guard_text(guard))
        return 0
    write_atomically(output, guard_text(guard).encode())
    print(f"guarded: {guard.names}")
    print(f"to check a build: layout-advise guard --check {output} -- {report.command[0]}", file=sys.stderr)
    return 0


def _binary(report: Report, module: str | None) -> ElfBinary:
    """The program of the run, which must be the one that was traced."""
    if module is not None:
        return ElfBinary.open_module(module)
    path = Path(report.binary.path)
    if not path.is_file():
        raise SourceError("cannot read the program that was traced", f"no {path}", "build and trace it again")
    binary = ElfBinary.open_module(path)
    if report.binary.build_id and binary.build_id != report.binary.build_id:
        raise SourceError(f"cannot guard {path}", "it was built anew since it was traced", "trace it again")
    return binary


def _gained(guard: Guard, report: Report, baseline: str) -> Guard:
    """With the gain of each region over an earlier run; a region that it does not have, or whose times cannot be held
    against it, has none."""
    found = {one.new.symbol: one.time for one in compared(read_report(common.existing(baseline)), report).regions}
    regions = []
    for region in guard.region:
        time = found.get(region.symbol)
        if time is None or time.speedup is None:
            why = time.why if time is not None else f"{baseline} does not have it"
            print(f"{region.name}: no gain is written down: {why}", file=sys.stderr)
            regions.append(region)
            continue
        gain = (time.speedup.median, time.speedup.lo, time.speedup.hi)
        regions.append(replace(region, gain=gain, over=Path(baseline).name))
    return replace(guard, region=tuple(regions))


def _timed(guard: Guard, report: Report) -> Guard:
    """With the times of the regions' calls; a region whose calls cannot be timed has none."""
    regions = []
    with tempfile.TemporaryDirectory(prefix="layout-advise-") as work:
        for region in guard.region:
            try:
                found = timed_calls(report.command, region.symbol, Path(work))
            except LayoutAdviseError as error:
                print(f"{region.name}: not timed: {error.line()}", file=sys.stderr)
                found = ()
            regions.append(replace(region, times_ns=found))
    return replace(guard, region=tuple(regions), cpu=describe().cpu)
