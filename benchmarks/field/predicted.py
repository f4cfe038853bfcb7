"""Measured layouts of programs that others wrote, written into their sources: what was predicted, and what is achieved.

The run of ``make field`` has the predictions: of the region told, the plain candidates that were measured and can be
written, those first that may gain most. Each is written by ``apply`` into a copy of the sources, built, run on the same
input, compared, and timed beside the original.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from applied import FIELD, arguments_of, logged, prepared, row_of, units

from layout_advise.apply import trees
from layout_advise.apply.stage import ApplyRequest, apply
from layout_advise.errors import LayoutAdviseError
from layout_advise.reports.model.contract import Report, read_report
from layout_advise.reports.model.wanted import WantedLayout, shown_record, wanted
from layout_advise.reports.model.wanted_arrays import shown_array

ROUNDS = 7
"""Processes of each program that are timed."""


def predicted(name: str, most: int) -> dict[str, Any]:
    """The row of one program, with at most so many of its layouts."""
    row = row_of(name)
    run = next((FIELD / ".results" / "runs").glob(f"*/{name}.{next(iter(row['flags']))}"))
    report = read_report(run)
    with tempfile.TemporaryDirectory(prefix="apply-") as work:
        here = Path(work).resolve()
        tree = prepared(row, here)
        trees.built(logged(tree, here))
        sources = tuple(one for one, _ in units(here / "commands", tree.root).values())
        found: list[dict[str, Any]] = []
        for number, layout in enumerate(writable(report)):
            if sum("achieved" in one for one in found) >= most:
                break
            request = ApplyRequest(layout, sources, tree, arguments_of(row), ROUNDS)
            found.append(_achieved(request, here / str(number)))
            print(f"  {found[-1]}", file=sys.stderr, flush=True)
    return {"program": name, "region": report.hotspots[0].name or report.hotspots[0].symbol, "layouts": found}


def writable(report: Report) -> Iterator[WantedLayout]:
    """The layouts of the region told that were measured in their plain form and can be written; of those that come to the
    same source the first."""
    hotspot, seen = report.hotspots[0], set()
    rows = [c for c in hotspot.candidates if c.variant == "plain" and c.predicted is not None]
    for row in sorted(rows, key=lambda c: -c.predicted.hi if c.predicted else 0.0):
        try:
            layout = wanted(report, row.id)
        except LayoutAdviseError:
            continue
        if row.evidence in ("live", "verified") and (layout.records, layout.arrays) not in seen:
            seen.add((layout.records, layout.arrays))
            yield layout


def _achieved(request: ApplyRequest, work: Path) -> dict[str, Any]:
    """The row of one layout."""
    layout, root = request.layout, str(request.tree.root)
    told = layout.candidate.predicted
    assert told is not None
    records = [f"{one.type}: {shown_record(one)}" for one in layout.records]
    said: dict[str, Any] = {
        "candidate": layout.candidate.id,
        "layout": [*records, *map(shown_array, layout.arrays)],
        "predicted": [told.median, told.lo, told.hi],
    }
    try:
        found = apply(request, work).achieved
    except LayoutAdviseError as error:
        return said | {"refused": error.line().replace(f"{root}/", "")[:300]}
    assert found is not None
    said["program"] = [found.program.median, found.program.lo, found.program.hi]
    if found.region is None:
        return said | {"refused": f"its calls are not timed: {found.why}"[:300]}
    one = found.region
    return said | {"achieved": [one.median, one.lo, one.hi], "inside": told.lo <= one.median <= told.hi}
