"""The road, top to bottom: sample, stop at a call, trace, explore, mock up, verify, time, decide, report."""

from __future__ import annotations

import contextlib
import datetime
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import msgspec

from layout_advise import __version__, machine
from layout_advise.checks import check_command, check_room
from layout_advise.choose.batches import can_be_batched, first_calls, may_be_learnt, plan_batch, too_short
from layout_advise.choose.loop_regions import find_loop
from layout_advise.choose.policy import CHOOSE
from layout_advise.choose.probed_calls import probe_calls
from layout_advise.choose.profile import Profiled, profile, spool, without_main
from layout_advise.choose.short_calls import long_call, plan_short_calls
from layout_advise.config import Settings
from layout_advise.describe.checks import quality
from layout_advise.describe.studied import AnotherKind, LongCall, MoreWays, SmallerRegion, Studied
from layout_advise.errors import RunDirError, UsageError
from layout_advise.observe.backends import check_backend
from layout_advise.observe.case import Case
from layout_advise.observe.find_kinds import at_kind
from layout_advise.policies import policies
from layout_advise.progress import Progress
from layout_advise.reports.model import contract
from layout_advise.reports.pages import html
from layout_advise.road import study
from layout_advise.rundir import RunDir, open_run, scratch, write_atomically
from layout_advise.static_program import trace_static
from layout_advise.tracer.process.launch import signal_name
from layout_advise.tracer.program.binary import ElfBinary
from layout_advise.workspace import Workspace


def advise(settings: Settings, progress: Progress) -> contract.Report | None:
    """The whole road; None when it was to stop before the report. Everything that was started is stopped, and nothing is
    left outside the run directory, however this ends."""
    check_backend(settings)
    alone = settings.backend == "valgrind" and settings.until == "trace"
    main = check_command(settings.command, static=alone)
    check_room(settings)
    if not main.dynamic:
        trace_static(settings, main, progress)
        return None
    for warning in main.warnings:
        progress.note(f"layout-advise: {warning}")
    with open_run(settings.output, settings.force) as run, scratch() as work, stages_kept(run, progress):
        progress.stage("sample", "running the program, sampled")
        stdin = spool(settings, work)
        profiled = profile(settings, main, stdin, run.output if settings.capture_output else None)
        for symbol, reason in profiled.skipped:
            progress.note(f"passed over {symbol}: {reason}")
        progress.note(f"hotspot: {profiled.title} ({profiled.share:.0%} of the samples)")
        if settings.until == "sample":
            return None
        case = watch(settings, main, profiled, stdin, run, work, progress)
        case, studied = study_again(case, study(case))
        if studied is None:
            return None
        progress.stage("report", "writing the report")
        report = assemble(settings, main, case.profiled, studied, progress)
        write(run, report)
        return report


def watch(
    settings: Settings, main: ElfBinary, profiled: Profiled, stdin: Path | None, run: RunDir, work: Path, progress: Progress
) -> Case:
    """Count and time the hotspot's calls: of a loop where there are too few, of many at a time where they are short."""
    progress.step("counting and timing the hotspot's calls")
    no_loop, beyond = "", None
    try:
        seen, chosen = probe_calls(settings, profiled, stdin)
    except UsageError as error:  # there is no such call; of a loop in it there may be
        beyond = error
        seen, chosen = probe_calls(replace(settings, call=None), profiled, stdin)
    if seen.calls < CHOOSE.fewest_calls:
        progress.step("looking for a loop that is entered more often")
        found = find_loop(settings, main, profiled, stdin)
        if not isinstance(found, str):
            profiled, seen, chosen = found
            progress.note(f"hotspot: {profiled.name} ({profiled.share:.0%} of the samples)")
        elif settings.hotspot is None and (other := without_main(profiled, main)) is not None:
            progress.note(f"passed over {profiled.name}: {found}")
            progress.note(f"hotspot: {other.name} ({other.share:.0%} of the samples)")
            profiled = other
            seen, chosen = probe_calls(settings, profiled, stdin)
        else:
            no_loop = found
    if beyond is not None and profiled.nest is None:
        raise beyond
    space = Workspace(run.region(profiled.name), work, progress)
    case = Case(settings, main, profiled, seen, chosen, stdin, space, no_loop=no_loop)
    if not too_short(profiled, seen, chosen):
        return case
    progress.step("recording calls, which are too short to be timed one by one")
    chosen, batch = plan_short_calls(settings, profiled, stdin, seen, chosen)
    return case.unbatched(batch) if isinstance(batch, str) else replace(case, chosen=chosen, batch=batch)


def study_again(case: Case, studied: Studied | AnotherKind | None) -> tuple[Case, Studied | None]:
    """The study of the region, taken up again in the ways that it asks for; and the case that it is of."""
    while True:
        if isinstance(studied, AnotherKind):  # the calls differ, and another one has to stand for them
            case = at_kind(case, studied.kinds.found)
            studied = study(case, studied.kinds)
        elif studied is None or studied.retry is None:
            return case, studied
        elif isinstance(studied.retry, MoreWays):
            case = replace(case, taken=case.taken | studied.retry.taken)
            studied = study(case)
        elif isinstance(studied.retry, LongCall):
            one = at_long_call(case)
            if one is None:
                return case, studied
            case, studied = one, study(one)
        elif isinstance(studied.retry, SmallerRegion):
            smaller = loop_of(case)
            if smaller is None:
                return case, studied
            case, studied = smaller, study(smaller)
        else:
            batch = in_batches(case, studied)
            if batch is None:
                return case, studied
            several = study(batch)
            assert not isinstance(several, AnotherKind)  # batches have no kinds
            # calls in a row may use other arrays through one pointer, as of two buffers that are swapped between them
            return case, several if several is None or several.tells else studied


def loop_of(case: Case) -> Case | None:
    """The case of the outermost loop in the hotspot that is entered more often than it, and makes fewer accesses each time;
    None where there is none."""
    if case.settings.call is not None or case.batch is not None or case.profiled.threaded:
        return None
    case.space.progress.step("looking for a loop that makes fewer accesses")
    found = find_loop(case.settings, case.main, case.profiled, case.stdin, 2 * case.probe.calls)
    if isinstance(found, str):
        return None
    profiled, seen, chosen = found
    if chosen.in_situ_ns is None or chosen.in_situ_ns < CHOOSE.short_call_ns:  # it could not be timed
        return None
    case.space.progress.note(f"a call makes more accesses than are recorded: {profiled.name} is looked at")
    space = replace(case.space, region=case.space.region.replaced_by(profiled.name))
    return replace(case, profiled=profiled, probe=seen, chosen=chosen, kinds=(), space=space)


def at_long_call(case: Case) -> Case | None:
    """The case of a call that is long enough to be timed by itself; None where short ones have nearly all of the time."""
    if not can_be_batched(case.profiled, case.probe) or case.chosen.alike:
        return None
    case.space.progress.step("looking for calls that are long enough to be timed by themselves")
    chosen = long_call(case.settings, case.profiled, case.stdin, case.probe, case.chosen)
    return None if chosen is None else replace(case, chosen=chosen, batch=None, no_batch="")


def in_batches(case: Case, studied: Studied) -> Case | None:
    """The case with several calls in a row timed together, where one call repeated is quicker than the program; None where
    that is not so, or they cannot be."""
    report = studied.report
    fit = case.batch is None and not case.chosen.alike and not report.kinds and can_be_batched(case.profiled, case.probe)
    if not fit or not may_be_learnt(report.original):
        return None
    start = case.settings, case.profiled, case.stdin, case.probe
    chosen, batch = plan_batch(*start, case.chosen, first_calls(*start), CHOOSE.learnt_calls)
    if isinstance(batch, str):
        return None
    case.space.progress.note(f"the same call repeated is quicker than in the program: {batch.size} calls in a row are timed")
    return replace(case, chosen=chosen, batch=batch)


@contextlib.contextmanager
def stages_kept(run: RunDir, progress: Progress) -> Iterator[None]:
    """Write down when each stage ran, also of a run that stops early."""
    try:
        yield
    finally:
        progress.close_stage()
        with contextlib.suppress(RunDirError):
            write_atomically(run.stages, msgspec.json.encode(progress.spans))


def assemble(
    settings: Settings, main: ElfBinary, profiled: Profiled, studied: Studied, progress: Progress
) -> contract.Report:
    """The report of a run with one hotspot."""
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
        hotspots=(studied.report,),
        profile=tuple(contract.Profile(h.demangled, h.share, h.module) for h in profiled.ranking[:20]),
        policy=policies(),
    )


def write(run: RunDir, report: contract.Report) -> None:
    """report.json, then report.html; then the run is complete."""
    write_atomically(run.report, contract.encode(report))
    write_atomically(run.html, html.render(report).encode())
    run.mark(complete=True)
