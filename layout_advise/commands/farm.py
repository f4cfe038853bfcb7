"""Trace many programs, inputs and flags in one go, and print one table.

  layout-advise farm list.toml -o farm.layout
  layout-advise farm list.toml -o farm.layout --only bzip2,lua     some of them
  layout-advise farm list.toml -o farm.layout --native             run each twice without tracing it, to see that it runs
  layout-advise farm list.toml -o farm.layout --scheduler tcp://10.0.0.1:8786 --everywhere

The list says how each program is fetched, built, given input and run (docs/farm.md). One thing at a time happens on a
machine. Given again, it makes the runs that are missing. Results go into the folder: farm.html, farm.json, farm.csv, and
runs/MACHINE/RUN, the run directory of each. With --scheduler the runs are shared out among the workers of a dask cluster.
"""

from __future__ import annotations

import argparse
import os
import shlex
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from layout_advise import __version__
from layout_advise.commands import common
from layout_advise.errors import RunDirError, UsageError
from layout_advise.farm.listing import Job, jobs_of, read_list, selected
from layout_advise.farm.rows import ended, in_order, read_rows, row_of, write_row
from layout_advise.farm.run_job import FarmOutcome, Order, run_folder
from layout_advise.farm.summary import summary
from layout_advise.progress import Progress
from layout_advise.reports.model.contract import decode
from layout_advise.reports.model.farm import FarmReport, FarmRow, encode_farm
from layout_advise.reports.pages import farm_pages, html
from layout_advise.reports.pages.console import styled
from layout_advise.rundir import write_atomically


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``farm``."""
    parser.add_argument("list", metavar="LIST.toml", help="the programs")
    parser.add_argument("-o", "--output", metavar="DIR", required=True, help="where the results go")
    parser.add_argument("--work", metavar="DIR", help="where programs are fetched and built (default: DIR/work of -o)")
    parser.add_argument("--only", metavar="NAMES", default="", help="these programs only, with commas between")
    parser.add_argument("--skip", metavar="NAMES", default="", help="not these programs")
    parser.add_argument("--options", metavar="WORDS", default="", help="options of `trace` for all runs, in quotes")
    parser.add_argument("--native", action="store_true", help="run the programs twice without tracing them")
    parser.add_argument("--again", choices=("failed", "all"), help="repeat runs without a report, or all")
    parser.add_argument("--summary", action="store_true", help="run nothing: the table of what is there")
    parser.add_argument(
        "--scheduler", metavar="ADDRESS", help="the scheduler of a dask cluster (default: this machine alone)"
    )
    parser.add_argument("--everywhere", action="store_true", help="with --scheduler: make each run on each machine")
    common.add_output(parser)


def run(arguments: argparse.Namespace) -> int:
    """Carry out ``farm``."""
    listing = Path(arguments.list)
    entries = selected(read_list(listing), _names(arguments.only), _names(arguments.skip))
    if arguments.everywhere and arguments.scheduler is None:
        raise UsageError("--everywhere needs --scheduler", "this machine is the only one")
    jobs = jobs_of(entries, listing.absolute().parent)
    order = _order(arguments)
    digests = {job.id: job.digest((*order.options, str(order.native)), order.version) for job in jobs}
    try:
        order.output.mkdir(parents=True, exist_ok=True)
        order.work.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunDirError(f"cannot write {error.filename}", error.strerror or "", "choose another -o") from error
    if not arguments.summary and (arguments.scheduler or _missing(jobs, _known(arguments, order, digests))):
        _work_off(arguments, jobs, order, digests)
    report = summary(in_order(read_rows(order.output, digests, order.native), digests), arguments.list)
    write(order.output, report)
    _show(report, arguments)
    if not arguments.quiet:
        print(f"summary: {order.output / 'farm.html'}", file=sys.stderr)
    return 0


def _order(arguments: argparse.Namespace) -> Order:
    output = Path(arguments.output).absolute()
    return Order(
        session=f"{os.getpid()}-{time.time_ns()}",
        output=output,
        work=Path(arguments.work).absolute() if arguments.work else output / "work",
        options=tuple(shlex.split(arguments.options)),
        version=__version__,
        native=arguments.native,
    )


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _work_off(arguments: argparse.Namespace, jobs: Sequence[Job], order: Order, digests: dict[str, str]) -> None:
    from layout_advise.farm.schedule import work_off

    known = _known(arguments, order, digests)
    done = {(row.run, row.machine) for row in known}
    left = len(jobs)

    def pending(machines: Sequence[str]) -> Sequence[tuple[Job, str | None]]:
        nonlocal left
        if arguments.everywhere:
            found: list[tuple[Job, str | None]] = [(j, m) for m in machines for j in jobs if (j.id, m) not in done]
        else:
            found = [(job, None) for job in _missing(jobs, known)]
        left = len(found)
        if len(found) < len(jobs):
            progress.note(f"{len(found)} of {len(jobs)} runs are missing")
        return found

    made = 0
    with Progress(arguments.quiet, arguments.verbose) as progress:
        progress.step("starting")

        def told(job: Job, machine: str | None, outcome: FarmOutcome | None) -> None:
            nonlocal made
            row = _kept(job, machine, outcome, order, digests[job.id])
            made += 1
            if row is not None:
                progress.note(_line(row))
            progress.count("programs", made, left)

        work_off(pending, order, arguments.scheduler, told)


def _known(arguments: argparse.Namespace, order: Order, digests: dict[str, str]) -> list[FarmRow]:
    return [row for row in read_rows(order.output, digests, order.native) if _counts(row, arguments.again)]


def _missing(jobs: Sequence[Job], known: Sequence[FarmRow]) -> list[Job]:
    runs = {row.run for row in known}
    return [job for job in jobs if job.id not in runs]


def _counts(row: FarmRow, again: str | None) -> bool:
    """Whether a row that is there need not be made again."""
    return again is None or (again == "failed" and row.status in ("done", "native"))


def _kept(job: Job, machine: str | None, outcome: FarmOutcome | None, order: Order, digest: str) -> FarmRow | None:
    """The row of an outcome, written; the report too, where it was made on a machine with other disks."""
    if outcome is None:
        lost = row_of(job, machine=machine or "lost", cpu="", created="", digest=digest)
        row = ended(lost, "lost", "its worker died; --again failed repeats it")
    elif outcome.row is None:
        return None
    else:
        row = outcome.row
    write_row(order.output, row, order.native)
    folder = run_folder(order.output, row.machine, job)
    if outcome is not None and outcome.report is not None and not (folder / "report.json").exists():
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(folder / "report.json", outcome.report)
        write_atomically(folder / "report.html", html.render(decode(outcome.report), str(folder.absolute())).encode())
    return row


def _line(row: FarmRow) -> str:
    parts = (farm_pages.verdict(row), farm_pages.reason(row), "" if row.gain is None else farm_pages.gain(row))
    return f"{row.run}: {', '.join(part for part in parts if part)}, {row.seconds:.0f} s"


def write(folder: Path, report: FarmReport) -> None:
    """farm.json, farm.csv and farm.html, with links to the reports that are there."""
    links = {}
    for row in report.rows:
        place = Path("runs") / row.machine / row.run / "report.html"
        if (folder / place).exists():
            links[row.run, row.machine] = str(place)
    write_atomically(folder / "farm.json", encode_farm(report))
    write_atomically(folder / "farm.csv", farm_pages.as_csv(report).encode())
    write_atomically(folder / "farm.html", farm_pages.page(report, links).encode())


def _show(report: FarmReport, arguments: argparse.Namespace) -> None:
    if arguments.json == "-":
        sys.stdout.write(encode_farm(report).decode())
        return
    if arguments.json:
        write_atomically(Path(arguments.json), encode_farm(report))
    if arguments.quiet:
        print(farm_pages.total_line(report.totals))
        return
    colour = common.wants_colour(arguments.color)
    styled(sys.stdout).write(farm_pages.terminal(report, width=common.width(), colour=colour))
