"""A loop that makes too many accesses each time it is entered: a chunk of its iterations is studied in its place.

A chunk begins at the loop's head and ends there, so many iterations later, or where the loop ends before; the next one
begins where it ends. They are what calls are of a function (``docs/decisions/0116``).
"""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

from layout_advise.choose.by_time import mean_by_samples
from layout_advise.choose.calls import ChosenCall
from layout_advise.choose.loop_regions import nests_of, place
from layout_advise.choose.policy import CHOOSE
from layout_advise.choose.probed_calls import probe_calls
from layout_advise.choose.profile import Profiled
from layout_advise.config import Settings
from layout_advise.errors import LayoutAdviseError, NotLiftedError
from layout_advise.reports.words.quantities import nanoseconds
from layout_advise.tracer.backends.clone.chunk import MOST_ITERATIONS
from layout_advise.tracer.program.binary import ElfBinary
from layout_advise.tracer.program.modules import Modules
from layout_advise.tracer.sampling.probe import Probe, probe

SHORTER = 4
"""Chunks that are not over before the loop is left are tried so many times shorter."""


def find_chunk(
    settings: Settings, main: ElfBinary, profiled: Profiled, stdin: Path | None, most: int = MOST_ITERATIONS
) -> tuple[Profiled, Probe, ChosenCall] | str:
    """Chunks, of at most ``most`` iterations, of the outermost loop, on the way to the hottest one, whose iterations are no
    longer than a chunk is to be, and long enough to be counted beside their work; with their count and times. Of little
    code, or else the least, as mock-ups are compiled some twenty times. Otherwise why there is none, as the end of a
    sentence."""
    modules = Modules(profiled.run.mappings, main, profiled.module)
    nests, none = nests_of(settings, profiled, modules, MOST_ITERATIONS)
    refused, why = [one for one in nests if isinstance(one, NotLiftedError)], list[str]()
    able = [one for one in nests if not isinstance(one, NotLiftedError)]
    for nest in sorted(able, key=lambda one: max(one.bytes, CHOOSE.most_chunk_bytes)):
        whole = profiled.of_nest(nest, modules)
        if whole.share < CHOOSE.least_loop_share:
            continue
        try:
            found = _in_chunks(settings, whole, stdin, most)
        except LayoutAdviseError as error:
            found = error.line()
        if not isinstance(found, str):
            return found
        why.append(f"its loop at {place(profiled, nest.head)}: {found}")
    why += [f"iterations of its loop at {place(profiled, one.address)} cannot be counted: {one.reason}" for one in refused]
    return next(iter(why), none)


def is_left_before(chosen: ChosenCall) -> bool:
    """Tells whether the loop is mostly left before a chunk is over: each begins where the one before it ends, and what lies
    between them is of iterations after the loop was left."""
    return (chosen.between_ns or 0.0) > (chosen.in_situ_ns or 0.0)


def _in_chunks(
    settings: Settings, whole: Profiled, stdin: Path | None, most: int
) -> tuple[Profiled, Probe, ChosenCall] | str:
    """Chunks of one loop, of at most so many iterations; or why there are none."""
    assert whole.nest is not None
    counted = probe(settings.command, whole.entry, stdin_path=stdin, timeout=settings.timeout, timed=0)
    if counted.recursive or counted.threads > 1:
        return "it is run by several threads, or within itself"
    each = mean_by_samples(whole, counted.passages)
    if math.isnan(each):
        return "how long an iteration takes is not known"
    counting = counted.counting_ns / whole.nest.chunk
    if each > CHOOSE.chunk_ns:
        return f"an iteration takes {nanoseconds(each)}"
    if counting > CHOOSE.most_counting * each:
        return f"an iteration takes {nanoseconds(each)}, and counting it up to {nanoseconds(counting)}"
    chunk = min(max(1, round(CHOOSE.chunk_ns / each)), counted.passages // CHOOSE.fewest_chunks, most)
    if not chunk or chunk * each < CHOOSE.short_call_ns:
        return f"it makes {counted.passages:,} iterations of {nanoseconds(each)}, too few"
    found = replace(whole, nest=replace(whole.nest, chunk=chunk))
    seen, chosen = probe_calls(settings, found, stdin)
    took = chosen.in_situ_ns or 0.0
    if took > CHOOSE.far * CHOOSE.chunk_ns:  # what the loop calls may have more of the samples than their stacks show
        chunk = max(1, int(chunk * CHOOSE.chunk_ns / took))
        found = replace(whole, nest=replace(whole.nest, chunk=chunk))
        seen, chosen = probe_calls(settings, found, stdin)
    if is_left_before(chosen) and chunk * each >= SHORTER * CHOOSE.short_call_ns:  # of shorter ones more are whole
        chunk //= SHORTER
        found = replace(whole, nest=replace(whole.nest, chunk=chunk))
        seen, chosen = probe_calls(settings, found, stdin)
    if seen.calls < CHOOSE.fewest_calls or is_left_before(chosen):
        return f"it is left before {chunk:,} iterations are over"
    return found, seen, chosen
