"""Advise on the structures in the buffers of OpenCL kernels, on each device of this machine.

  layout-advise opencl -- ./host its args                          an unmodified program: its launches are recorded
  layout-advise opencl --kernel k.cl --spec args.toml
  layout-advise opencl --plan -- ./host its args                   also which kernel on which device, in one plan
  layout-advise opencl --kernel k.cl --spec args.toml --graph      only the field graph and its clusters: nothing is run

The source is read, the field graph of each structure is made (Kofler, Cosenza, Fahringer 2015), and the kernel is rewritten
for layouts that it suggests: clusters of members in buffers of their own, in tiles or not. Each is compared byte by byte
with the original and timed against it in fresh processes. docs/opencl.md describes the spec.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from layout_advise.commands import common
from layout_advise.errors import UsageError
from layout_advise.opencl.host.platforms import devices
from layout_advise.opencl.host.spec import read_spec
from layout_advise.opencl.intercept.chosen import chosen
from layout_advise.opencl.intercept.recorded import RecordedLaunches, read_recorded
from layout_advise.opencl.intercept.run import run_recorded
from layout_advise.opencl.placement.order import of_one
from layout_advise.opencl.policy import OPENCL
from layout_advise.opencl.study import PlanInput, StudyOptions, study
from layout_advise.progress import Progress
from layout_advise.reports.model.kernels import OpenclReport, encode_opencl
from layout_advise.reports.pages import kernel_pages
from layout_advise.reports.pages.console import styled
from layout_advise.rundir import scratch, write_atomically


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``opencl``."""
    parser.add_argument("--kernel", metavar="FILE", help="the source of the kernel")
    parser.add_argument("--spec", metavar="FILE", help="its arguments and ranges (TOML)")
    parser.add_argument("--options", metavar="WORDS", default="", help="further build options, in quotes")
    parser.add_argument("--device", metavar="NAME", default="", help="only devices with this in their name or platform's")
    parser.add_argument("--graph", action="store_true", help="only the field graph from the source: nothing is run")
    parser.add_argument(
        "--record",
        action="store_true",
        help="also record accesses of some work items, for a field graph beside the other",
    )
    parser.add_argument(
        "--plan",
        action="store_true",
        help="also one plan over all devices: which kernel where, with the copies between them",
    )
    parser.add_argument(
        "--processes", type=int, default=OPENCL.processes, metavar="N", help="fresh processes that time the best layouts"
    )
    parser.add_argument(
        "--most-kernels",
        type=int,
        default=4,
        metavar="N",
        help="of a program's kernels with structures only those with most time (default: 4)",
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="write the report as HTML to FILE")
    common.add_fail_on(parser)
    common.add_output(parser)
    parser.add_argument("program", nargs=argparse.REMAINDER, metavar="-- HOST_PROGRAM", help="a program that uses OpenCL")


def run(arguments: argparse.Namespace) -> int:
    """Carry out ``opencl``."""
    if arguments.processes < 1:
        raise UsageError("--processes must be at least 1")
    program = [word for k, word in enumerate(arguments.program) if k or word != "--"]
    if bool(program) == bool(arguments.kernel or arguments.spec) or bool(arguments.kernel) != bool(arguments.spec):
        raise UsageError("nothing to advise on", "either a host program is needed, or --kernel and --spec")
    found = [] if arguments.graph and not arguments.record else devices(arguments.device)
    with Progress(arguments.quiet, arguments.verbose) as progress:
        recorded = _recorded(program, arguments, progress) if program else _described(arguments)
        measure = not arguments.graph
        plan = PlanInput(recorded.events, recorded.numbers) if arguments.plan and measure else None
        options = StudyOptions(arguments.processes, measure, measure, arguments.record, plan)
        command = program or ["opencl", "--kernel", arguments.kernel, "--spec", arguments.spec]
        report = study(recorded.launches, found, options, command, recorded.shares, recorded.notes, tell=progress.step)
    _write(report, arguments)
    least = arguments.fail_on
    gains = [d.verdict.gain or 0 for p in report.programs for d in p.devices if d.verdict.action == "change"]
    return common.FAIL_ON_REACHED if least is not None and any(gain >= least for gain in gains) else 0


def _described(arguments: argparse.Namespace) -> RecordedLaunches:
    """The launch of the spec."""
    launch = read_spec(common.existing(arguments.kernel), common.existing(arguments.spec), arguments.options)
    return RecordedLaunches((launch,), {}, (), of_one(launch), (launch,))


def _recorded(program: list[str], arguments: argparse.Namespace, progress: Progress) -> RecordedLaunches:
    """The launches of a program that is run to its end; those of the kernels that are studied."""
    progress.step(f"running {program[0]}")
    with scratch() as folder:
        output = sys.stderr.buffer if arguments.json == "-" else None
        found = read_recorded(run_recorded(program, folder, output), program[0])
    return chosen(found, arguments.most_kernels, arguments.plan)


def _write(report: OpenclReport, arguments: argparse.Namespace) -> None:
    """The report to all places that were asked for."""
    if arguments.output:
        write_atomically(Path(arguments.output), kernel_pages.page(report).encode())
    if arguments.json and arguments.json != "-":
        write_atomically(Path(arguments.json), encode_opencl(report))
    if arguments.json == "-":
        sys.stdout.write(encode_opencl(report).decode())
    elif arguments.quiet:
        for text in (d.verdict.text for p in report.programs for d in p.devices):
            print(text)
    else:
        colour = common.wants_colour(arguments.color)
        styled(sys.stdout).write(kernel_pages.terminal(report, width=common.width(), colour=colour))
