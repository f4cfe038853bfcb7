"""What ``apply`` prints of its outcome."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from layout_advise.apply.stage import Applied
from layout_advise.mockup.timing.statistics import Ratio
from layout_advise.reports.model.candidate import Interval
from layout_advise.reports.model.wanted import WantedLayout, shown_record
from layout_advise.reports.model.wanted_arrays import shown_array


def lines(layout: WantedLayout, applied: Applied, patch: Path | None) -> Iterator[str]:
    """The outcome, line by line."""
    candidate = layout.candidate
    for record in layout.records:
        yield f"{candidate.id}: {record.type} as {shown_record(record)}"
    for array in layout.arrays:
        yield f"{candidate.id}: {shown_array(array)}"
    if layout.note:
        yield f"  {layout.note}"
    added = sum(line.startswith("+") and not line.startswith("+++") for line in applied.patch.splitlines())
    files = f"{len(applied.changed)} file{'s' if len(applied.changed) > 1 else ''}"
    yield f"patch: {patch if patch is not None else 'on standard output'} ({files}, {added} new lines)"
    if applied.unformatted:
        yield f"not formatted as its .clang-format asks for: {applied.unformatted}"
    if not applied.ran:
        yield "not built and not run: give the project's command with --build"
        return
    yield "built; output and exit status are the original's"
    if applied.achieved is None:
        return
    region = applied.achieved.region
    achieved = (
        f"achieved {_ratio(region)}" if region is not None else f"not timed ({applied.achieved.why or 'no call was seen'})"
    )
    yield f"{layout.hotspot.name or layout.hotspot.symbol}: predicted {_ratio(candidate.predicted)}, {achieved}"
    whole = f"predicted {candidate.program_speedup:.2f}, " if candidate.program_speedup is not None else ""
    yield f"the whole program: {whole}achieved {_ratio(applied.achieved.program)}"
    if applied.achieved.is_slower:
        yield "the program is slower with the source rewritten so: no file is changed; leave the layout as it is"


def _ratio(ratio: Ratio | Interval | None) -> str:
    return "nothing" if ratio is None else f"{ratio.median:.2f} ({ratio.lo:.2f}–{ratio.hi:.2f})"
