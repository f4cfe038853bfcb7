"""The road, top to bottom: sample, stop at a call, trace, explore, mock up, verify, time, decide, report."""

from __future__ import annotations

import contextlib
import datetime
import os
from collections.abc import Iterator

import msgspec

from layout_advise import __version__, machine
from layout_advise.checks import check_command, check_room
from layout_advise.choose.profile import profile, spool
from layout_advise.compare.applied import applied_in
from layout_advise.compare.confirm import confirmed
from layout_advise.config import Settings
from layout_advise.describe.checks import quality
from layout_advise.devices.planned import with_machines
from layout_advise.devices.profile import read_profiles
from layout_advise.errors import RunDirError
from layout_advise.observe.backends import check_backend
from layout_advise.policies import policies
from layout_advise.progress import Progress
from layout_advise.regions.looked import Told
from layout_advise.regions.one import RunContext
from layout_advise.regions.run_seconds import run_time
from layout_advise.regions.several import study_regions
from layout_advise.reports.model import contract
from layout_advise.reports.model.plan import Transfer
from layout_advise.reports.model.redact import without_source
from layout_advise.reports.pages import html
from layout_advise.rundir import RunDir, open_run, scratch, write_atomically
from layout_advise.static_program import trace_static
from layout_advise.tracer.offspring.ending import adopting, end_marked
from layout_advise.tracer.offspring.marks import is_abandoned
from layout_advise.tracer.process.launch import signal_name
from layout_advise.tracer.program.binary import ElfBinary


def advise(settings: Settings, progress: Progress) -> contract.Report | None:
    """The whole road; None when it was to stop before the report. Everything that was started is stopped, and nothing is
    left outside the run directory, however this ends."""
    check_backend(settings)
    alone = settings.backend == "valgrind" and settings.until == "trace"
    main = check_command(settings.command, static=alone)
    baseline = contract.read_report(settings.baseline) if settings.baseline is not None else None
    stated = Transfer(*settings.transfer) if settings.transfer is not None else None
    profiles = read_profiles(settings.machine_profiles, settings.command, stated)
    check_room(settings)
    if not main.dynamic:
        trace_static(settings, main, progress)
        return None
    for warning in main.warnings:
        progress.note(f"layout-advise: {warning}")
    end_marked(is_abandoned)
    with (
        adopting() as adopt,
        open_run(settings.output, settings.force) as run,
        scratch() as work,
        stages_kept(run, progress),
    ):
        time = run_time(settings.budget)
        progress.stage("sample", "running the program, sampled")
        stdin = spool(settings, work)
        if stdin is None and os.isatty(0):
            progress.note("standard input is a terminal, which is not read: the program's is empty (< FILE gives it one)")
        profiled = profile(settings, main, stdin, run.output if settings.capture_output else None, ended=adopt)
        for symbol, reason in profiled.skipped:
            progress.note(f"passed over {symbol}: {reason}")
        progress.note(f"hotspot: {profiled.title} ({profiled.share:.0%} of the samples)")
        if settings.until == "sample":
            return None
        outcome = study_regions(RunContext(settings, main, stdin, run, work, progress, time), profiled)
        if outcome is None:
            return None
        progress.stage("report", "writing the report")
        report = assemble(settings, main, outcome, progress)
        report = with_machines(msgspec.structs.replace(report, transfer=stated), profiles)
        if baseline is not None and settings.baseline is not None:
            report = confirmed(report, baseline, settings.baseline, applied_in(main, settings.baseline))
        report = without_source(report) if settings.no_source else report
        write(run, report, named=not settings.no_source)
        return report


@contextlib.contextmanager
def stages_kept(run: RunDir, progress: Progress) -> Iterator[None]:
    """Write down when each stage ran, also of a run that stops early."""
    try:
        yield
    finally:
        progress.close_stage()
        with contextlib.suppress(RunDirError):
            write_atomically(run.stages, msgspec.json.encode(progress.spans))


def assemble(settings: Settings, main: ElfBinary, outcome: Told, progress: Progress) -> contract.Report:
    """The report of a run: the region that tells most, then the others that were studied."""
    profiled, studied = outcome.case.profiled, outcome.studied
    seconds = progress.seconds
    stages = {name: round(seconds.get(name, 0.0), 3) for name in ("sample", "trace", "explore", "measure")}
    return contract.Report(
        schema=contract.SCHEMA,
        tool=contract.Tool("layout-advise", __version__),
        created=datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        status="complete" if studied.complete else "partial",
        command=settings.command,
        binary=contract.Binary(str(main.path), main.build_id, profiled.module.producer_at(profiled.function.start)),
        program=contract.Program(
            profiled.run.exit_status,
            signal_name(profiled.run.signal) if profiled.run.signal is not None else None,
            studied.conditions.deterministic,
        ),
        machine=machine.describe(),
        quality=quality(studied.conditions),
        seconds=contract.Seconds(**stages, total=round(sum(seconds.values()), 3)),
        hotspots=(studied.report, *(one.studied.report for one in outcome.beside)),
        profile=tuple(contract.Profile(h.demangled, h.share, h.module) for h in profiled.ranking[:20]),
        policy=policies(),
        passed_over=outcome.passed_over,
        over_regions=outcome.over_regions,
        plan=outcome.plan,
        started_in=_here(),
    )


def _here() -> str | None:
    """The present folder; None where it was removed."""
    with contextlib.suppress(OSError):
        return os.getcwd()
    return None


def write(run: RunDir, report: contract.Report, *, named: bool = True) -> None:
    """report.json, then report.html, in whose commands the folder is ``named``; then the run is complete."""
    write_atomically(run.report, contract.encode(report))
    write_atomically(run.html, html.render(report, str(run.path.absolute()) if named else None).encode())
    run.mark(complete=True)
