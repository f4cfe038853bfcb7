"""A statically linked program: no agent can be preloaded, so nothing but a trace under Valgrind is to be had."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from layout_advise.choose.profile import spool
from layout_advise.config import Settings
from layout_advise.errors import BinaryError, UsageError
from layout_advise.progress import Progress
from layout_advise.rundir import open_run, scratch
from layout_advise.tracer.backends.protocol import Rerun
from layout_advise.tracer.backends.valgrind.record import trace_alone
from layout_advise.tracer.backends.valgrind.run import check_instructions
from layout_advise.tracer.code.region import Region
from layout_advise.tracer.process.patching import Entry
from layout_advise.tracer.program.binary import ElfBinary
from layout_advise.tracer.trace.trace import OTHERS, Mapping
from layout_advise.tracer.trace.trace_file import write_trace


def trace_static(settings: Settings, main: ElfBinary, progress: Progress) -> None:
    """Trace call ``--call`` (the first, if none is given) of ``--hotspot`` into the run directory."""
    if settings.hotspot is None:
        why = "it is linked statically, and the sampler is a preloaded library"
        raise UsageError(f"cannot find the hotspot of {main.path}", why, "name it with --hotspot SYMBOL")
    function = main.find(settings.hotspot)
    start = function.start
    entry = Entry(Path(main.path).resolve(), start, main.read(start, function.size), function.name)
    check_instructions(main.region(function, 0, callees=True))

    def region_at(mappings: Sequence[Mapping]) -> Region:
        base = main.load_base(mappings)
        if base is None:
            raise BinaryError(f"cannot trace {main.path}", "it is not among the mappings of its own process")
        return main.region(function, base, callees=True)

    with open_run(settings.output, settings.force) as run, scratch() as work:
        progress.stage("trace", "recording the accesses of one call under Valgrind")
        stdin = spool(settings, work)
        rerun = Rerun(
            settings.command, entry, settings.call or 1, settings.max_refs, stdin, timeout=settings.timeout, folder=work
        )
        trace = trace_alone(rerun, region_at)
        if trace.others:
            progress.note(f"layout-advise: {OTHERS}")
        if trace.truncated:
            trace = replace(trace, limits=(f"cut after {trace.accesses:,} accesses (--max-refs {settings.max_refs})",))
        kept = write_trace(trace, run.region(function.name).trace, settings.max_bytes)
        for text in kept.limits:
            progress.note(f"layout-advise: {text}")
