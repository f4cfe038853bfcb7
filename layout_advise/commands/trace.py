"""Find the hotspot of a program, trace it, try other layouts, and say which is worth it.

  layout-advise trace -- ./app its args
  layout-advise trace --hotspot step --call 7 -o step.layout -- ./app input.dat < stdin.txt
  layout-advise trace --baseline app.layout -o changed.layout -- ./changed its args    what a change of layout gained
  layout-advise trace --machine-profile app.layout --transfer 12G,5 -o here.layout -- ./app its args    which region where

The program runs to its end once, with its own output; then it is started again a few times and stopped at one call of the
hotspot, where everything else happens. Results go into app.layout/ (report.html, report.json, the mock-ups in C). Where the
program writes to a file (-- ./app > file), what is told here goes to stderr.
"""

from __future__ import annotations

import argparse
import math
import os
import stat
import sys
from pathlib import Path
from typing import get_args

from layout_advise.choose.wrapped_command import Unwrapped, unwrapped
from layout_advise.commands import common
from layout_advise.config import (
    DEFAULT_CANDIDATES,
    DEFAULT_MAX_REFS,
    DEFAULT_REGIONS,
    DEFAULT_TIMEOUT,
    STAGES,
    STDIN,
    Settings,
    Stage,
    from_environment,
)
from layout_advise.errors import UsageError
from layout_advise.progress import Progress
from layout_advise.reports.words.first_screen import apply_command, views_command
from layout_advise.rundir import default_path
from layout_advise.tracer.backends.registry import backend_names


def positive(text: str) -> int:
    """An integer of at least 1, for argparse."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return value


def seconds(text: str) -> float:
    """A time of more than 0 seconds, for argparse."""
    value = float(text)
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError("must be positive")
    return value


def size(text: str) -> int:
    """A number of bytes, also as ``100K``, ``20M`` or ``1.5G`` (powers of 1024), for argparse."""
    digits, unit = (text[:-1], text[-1].upper()) if text[-1:].upper() in tuple("KMG") else (text, "")
    value = int(float(digits) * 1024 ** " KMG".index(unit or " "))
    if value < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return value


def transfer(text: str) -> tuple[float, float]:
    """Bytes a second and microseconds, as ``12G,5``, for argparse; returns the latter in ns."""
    rate, comma, latency = text.partition(",")
    if not comma:
        raise argparse.ArgumentTypeError("must be RATE,LATENCY, as 12G,5")
    waited = float(latency)
    if not 0 <= waited < math.inf:
        raise argparse.ArgumentTypeError("a latency must not be negative")
    return float(size(rate)), 1000.0 * waited


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``trace``."""
    parser.add_argument("program", nargs=argparse.REMAINDER, metavar="-- PROGRAM ARGS", help="the program and its arguments")
    parser.add_argument("-o", "--output", metavar="DIR", help="run directory (default: PROGRAM.layout)")
    parser.add_argument("-f", "--force", action="store_true", help="replace a complete run")
    parser.add_argument(
        "--hotspot",
        metavar="SYMBOL",
        action="append",
        default=[],
        help="the function to work on (default: the hottest ones); may be given several times",
    )
    parser.add_argument(
        "--regions",
        type=positive,
        default=DEFAULT_REGIONS,
        metavar="N",
        help="regions to study beside each other, with the same layouts: the hottest that together hold 90 %% of the "
        "samples, at most N (default: %(default)s; of --hotspot all that it names)",
    )
    parser.add_argument(
        "--call", type=positive, metavar="N", help="the call to stop at (default: a steady one, not the first)"
    )
    parser.add_argument(
        "--backend",
        choices=("auto", *backend_names()),
        default="auto",
        help="how to trace (default: auto, an instrumented copy of the code, and Valgrind for code that cannot be copied)",
    )
    parser.add_argument("--snapshot", choices=("auto", "criu", "fork"), default="auto", help="how to repeat the call")
    parser.add_argument("--until", choices=STAGES, default="report", metavar="STAGE", help=f"stop after {', '.join(STAGES)}")
    parser.add_argument(
        "--baseline", metavar="RUN", help="a run before the layout was changed: tell what the change is and what it gained"
    )
    parser.add_argument(
        "--machine-profile",
        metavar="RUN",
        action="append",
        default=[],
        help="a run of the same program on another machine (report.json, or its folder): plan which region runs where; may "
        "be given several times",
    )
    parser.add_argument(
        "--transfer",
        type=transfer,
        metavar="RATE,LATENCY",
        help="how data gets between this machine and the other one: bytes a second, microseconds (as 12G,5); where the run "
        "there does not have it, it has to be given",
    )
    common.add_fail_on(parser)
    parser.add_argument(
        "--timeout",
        type=float,
        default=from_environment("TIMEOUT", str(DEFAULT_TIMEOUT)),
        metavar="SECONDS",
        help="for each run of the program (default: %(default)s)",
    )
    parser.add_argument(
        "--restores",
        type=positive,
        metavar="N",
        help="processes to measure in (default: 9, or 7 where a call takes 2 ms and more; fewer when --budget is spent)",
    )
    parser.add_argument(
        "--budget",
        type=seconds,
        metavar="SECONDS",
        help="for measuring a region and trying its layouts in the running program: until the verdict is clear, or so "
        "long; all regions together have twice as long, by their shares of the samples; trials have half of a region's "
        "time at least, and 15 s (default: 60)",
    )
    parser.add_argument(
        "--candidates",
        type=positive,
        default=DEFAULT_CANDIDATES,
        metavar="N",
        help="layouts to measure at most (default: %(default)s)",
    )
    parser.add_argument(
        "--max-refs",
        type=positive,
        default=DEFAULT_MAX_REFS,
        metavar="N",
        help="accesses to record at most, in a parallel region an equal share by each thread (default: %(default)s)",
    )
    parser.add_argument(
        "--max-bytes",
        type=size,
        metavar="SIZE",
        help="room for the records of the call, and for the file of the trace, as 200M (default: what --max-refs takes)",
    )
    parser.add_argument("--temporary", action="store_true", help="judge layouts that are converted around every call")
    parser.add_argument(
        "--live",
        action=argparse.BooleanOptionalAction,
        help="try the best layouts in the running program, which is started about 13 more times for each (default: where "
        "times in the snapshot differ from the program's, and a plan of the whole program that changes something)",
    )
    parser.add_argument(
        "--allow-reassociation",
        action="store_true",
        help="advise layouts also where sums of several threads differ by rounding (they do from run to run)",
    )
    common.add_output(parser)
    common.add_all(parser)


def command_line(arguments: argparse.Namespace) -> Unwrapped:
    """The program and its arguments, without the ``--`` and what only starts it."""
    words = list(arguments.program)
    if words and words[0] == "--":
        words = words[1:]
    if not words:
        raise UsageError("no program given", "", "write: layout-advise trace -- ./app its args")
    return unwrapped(words)


def _input() -> Path | None:
    """Whatever waits on stdin: a file or pipe is spooled, a terminal is not read."""
    try:
        mode = os.fstat(0).st_mode
    except OSError:
        return None
    return STDIN if stat.S_ISFIFO(mode) or stat.S_ISREG(mode) else None


def settings(arguments: argparse.Namespace) -> Settings:
    """The checked settings of one run."""
    started = command_line(arguments)
    command = started.command
    if arguments.timeout <= 0:
        raise UsageError("--timeout must be positive")
    assert arguments.until in get_args(Stage)
    return Settings(
        command=command,
        output=Path(arguments.output) if arguments.output else default_path(command[0]),
        force=arguments.force,
        hotspot=arguments.hotspot[0] if arguments.hotspot else None,
        further_hotspots=tuple(dict.fromkeys(name for name in arguments.hotspot if name != arguments.hotspot[0])),
        regions=max(arguments.regions, len(set(arguments.hotspot))),
        call=arguments.call,
        backend=arguments.backend,
        snapshot=arguments.snapshot,
        until=arguments.until,
        timeout=arguments.timeout,
        restores=arguments.restores,
        budget=arguments.budget,
        candidates=arguments.candidates,
        max_refs=arguments.max_refs,
        max_bytes=arguments.max_bytes,
        temporary=arguments.temporary,
        allow_reassociation=arguments.allow_reassociation,
        live="auto" if arguments.live is None else "always" if arguments.live else "never",
        stdin=_input(),
        capture_output=arguments.json == "-",
        no_source=arguments.no_source,
        baseline=common.existing(arguments.baseline) if arguments.baseline else None,
        machine_profiles=tuple(common.existing(one) for one in arguments.machine_profile),
        transfer=arguments.transfer,
        environment=dict(started.variables),
    )


def run(arguments: argparse.Namespace) -> int:
    """Carry out ``trace``."""
    from layout_advise import pipeline  # heavy imports: not for --help

    chosen = settings(arguments)
    os.environ.update(chosen.environment)
    before = common.written()
    with Progress(arguments.quiet, arguments.verbose) as progress:
        report = pipeline.advise(chosen, progress)
    if report is None:
        print(f"results so far: {chosen.output}", file=sys.stderr)
        return 0
    program_writes = common.written() != before  # into that file: it is the program's
    common.show(report, arguments, chosen.output, sys.stderr if program_writes else sys.stdout)
    print(f"report: {chosen.output / 'report.html'}", file=sys.stderr)
    for hotspot in report.hotspots:
        if (arguments.quiet or arguments.json == "-") and (offered := apply_command(hotspot, str(chosen.output))):
            print(f"to write {offered.layout}: {offered.command}", file=sys.stderr)
        if command := views_command(hotspot, str(chosen.output)):
            print(f"to annotate its loops for a temporary layout: {command}", file=sys.stderr)
    return common.FAIL_ON_REACHED if common.advised(report, arguments.fail_on) else 0
