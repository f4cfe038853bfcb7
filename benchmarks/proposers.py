"""How often each proposer had the best layout: ``python benchmarks/proposers.py [REPORT.json ...]``.

Of each region with times of at least two layouts, the layout with the greatest gain found by all proposers together, and
for each proposer whether it was among its own, and whether one of these was as fast (their intervals meet). A layout counts
by its fastest variant. Without files: the reports of the field's last run.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from layout_advise.reports.model.contract import decode
from layout_advise.reports.model.hotspot import HotspotReport

RUNS = Path(__file__).resolve().parent / "field" / ".results" / "runs"
LEAST = 1.05
"""What a layout has to gain at least for a region to count among those with a gain."""


@dataclass(frozen=True, slots=True)
class Layout:
    """A layout of a region: who proposed it, and the gain of its fastest variant, from ``lo`` to ``hi``."""

    proposers: frozenset[str]
    lo: float
    gain: float
    hi: float


def layouts(region: HotspotReport) -> list[Layout]:
    """The layouts of a region that have times."""
    found: dict[str, Layout] = {}
    for one in region.candidates:
        if one.speedup is None:
            continue
        name = one.id.split("-")[0]
        layout = Layout(frozenset(one.proposers), one.speedup.lo, one.speedup.median, one.speedup.hi)
        if name not in found or found[name].gain < layout.gain:
            found[name] = layout
    return list(found.values())


def rows(regions: Collection[list[Layout]]) -> list[tuple[str, int, int, int, float]]:
    """For each proposer: the regions for which it proposed something that was timed, those in which it had the best layout,
    those in which it had one as fast, and how many of its layouts were timed in a region at the median."""
    names = sorted({name for one in regions for layout in one for name in layout.proposers})
    found = []
    for name in names:
        own = {k: [x for x in one if name in x.proposers] for k, one in enumerate(regions)}
        proposed = {k: some for k, some in own.items() if some}
        best = {k: max(one, key=lambda x: x.gain) for k, one in enumerate(regions)}
        had = sum(best[k] in some for k, some in proposed.items())
        met = sum(any(x.hi >= best[k].lo for x in some) for k, some in proposed.items())
        found.append((name, len(proposed), had, met, median(len(some) for some in proposed.values())))
    return found


def table(regions: Collection[list[Layout]]) -> Iterable[str]:
    """The rows as Markdown."""
    yield "| proposer | regions | had the best layout | had one as fast | its layouts in a region (median) |"
    yield "|---|---|---|---|---|"
    for name, count, had, met, many in rows(regions):
        yield f"| {name} | {count} of {len(regions)} | {had} | {met} | {many:g} |"


def regions_of(files: Iterable[Path]) -> Mapping[str, list[Layout]]:
    """The timed layouts of all regions in which there are at least two, by run and function."""
    found = {}
    for file in files:
        for region in decode(file.read_bytes()).hotspots:
            if len(some := layouts(region)) > 1:
                found[f"{file.parent.name} {region.symbol} {region.region}"] = some
    return found


def main(words: Collection[str]) -> int:
    """Print the table over all regions, and the one over those in which something gained."""
    found = regions_of([Path(word) for word in words] or sorted(RUNS.glob("*/*/report.json")))
    if not found:
        print("no region with times of two layouts")
        return 1
    print(f"{len(found)} regions\n")
    print("\n".join(table(list(found.values()))))
    gaining = [some for some in found.values() if max(x.gain for x in some) >= LEAST]
    print(f"\n{len(gaining)} of them in which a layout gains {LEAST} or more\n")
    print("\n".join(table(gaining)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
