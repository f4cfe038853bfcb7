"""What the algebra and the plan cost, against what was asked of them: ``python benchmarks/algebra.py``.

Every row runs in a process of its own; the fastest of ``--repeat`` runs counts, since a shared machine only adds. CPU time
is shown besides, memory is the process's greatest resident set, interpreter and NumPy included.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

RESULTS = Path(__file__).resolve().parent / "results"
Figures = dict[str, float]
SIDE = 212
"""212^4 places, every other one accessed: 1.01e9 points."""


def checkerboard(side: int) -> Figures:
    """Derive a 4-D checkerboard from its folded trace: a loop over pairs for each dimension, two nests in each."""
    from layout_advise.layoutalgebra import derive
    from layout_advise.layoutalgebra.sets.nests import Affine, FoldedStream, Loop, Point

    weights = [8 * side**k for k in (3, 2, 1, 0)]

    def nest(parity: tuple[int, ...]) -> Loop:
        if len(parity) < 3:
            return Loop(Affine(side // 2), (nest((*parity, 0)), nest((*parity, 1))))
        start = sum(p * w for p, w in zip((*parity, sum(parity) % 2), weights, strict=True))
        return Loop(Affine(side // 2), (Point(Affine(start, tuple(2 * w for w in weights))),))

    term = derive([FoldedStream((nest(()),), side**4 // 2)], base=0, bytes=8 * side**4)
    assert term.count == side**4 // 2
    return {"points": term.count}


def twelve_fields(fields: int, budget: int = 1000) -> Figures:
    """Search the layouts of a structure of that many doubles in a 3-D array of 40 x 50 x 60."""
    from layout_advise.layoutalgebra.derive.structure import Dim, Field, Structure
    from layout_advise.layoutalgebra.explore.wide_search import search

    size = 8 * (fields + 4)
    dims = (Dim(40, 3000 * size), Dim(50, 60 * size), Dim(60, size))
    members = tuple(Field(f"f{k}", 8 * k, 8, "double", 100 * (k + 1), k % 2) for k in range(fields))
    found = search(Structure("s0", "grid", 0, 120_000 * size, dims, members), budget=budget)
    return {"layouts": len(found)}


def rewriting(places: int) -> Figures:
    """Blocks for SIMD, unused members dropped, the map composed and inverted."""
    from layout_advise.layoutalgebra import A, S
    from layout_advise.layoutalgebra.rules.rules import Compact, Permute, SplitArray, rewrite

    term = A(places // 8) @ S([0, 3, 4], 8)
    done = rewrite(term, [SplitArray(0, 8), Permute(1), Compact(1)])
    assert done.map.inverse()(done.place(3)) == 3
    return {"places": term.size}


def field_graph(rounds: int) -> Figures:
    """The distances of twelve fields, and all their clusters, from the order of that many times a million accesses: two
    sections that use two and six of them, a third that uses all."""
    from layout_advise.layoutalgebra.fieldgraph.clusters import clusterings
    from layout_advise.layoutalgebra.fieldgraph.memory_distance import FieldAccess, Repeat, memory_distances

    names = [f"f{k}" for k in range(12)]
    fields = [FieldAccess(name, 8) for name in names]
    sections = (Repeat(50_000, (*fields[:2],)), Repeat(50_000, (*fields[2:8],)), Repeat(50_000, (*fields,)))
    steps = (Repeat(rounds, sections),)
    found = clusterings(names, memory_distances(steps))
    return {"accesses": sum(step.total for step in steps) // 8, "clusterings": len(found)}


def plans(regions: int, structures: int, layouts: int) -> Figures:
    """The best plan and the next for each of some structures, through a thousand turns over the regions."""
    import numpy as np

    from layout_advise.plan.cheapest import LayoutCosts, cheapest, second_cheapest
    from layout_advise.plan.region_order import RegionEntry, RegionLoop

    steps = (RegionLoop(1000, tuple(RegionEntry(k) for k in range(regions))),)
    random, found = np.random.default_rng(1), 0
    for _ in range(structures):
        moves = random.random((regions, layouts, layouts)) * (1 - np.eye(layouts))
        costs = LayoutCosts(random.random((regions, layouts)), moves)
        best = cheapest(steps, costs)
        assert best is not None
        found += 1 + (second_cheapest(steps, costs, best) is not None)
    return {"plans": found}


def nothing() -> Figures:
    """Import the package."""
    import layout_advise.layoutalgebra

    assert callable(layout_advise.layoutalgebra.A)
    assert not {"sympy", "numpy"} & set(sys.modules)
    return {}


ROWS: dict[str, tuple[str, str, Callable[[], Figures]]] = {
    "import": ("import the package (no sympy, no NumPy)", "< 0.2 s", nothing),
    "board": ("4-D checkerboard of 1.01e9 points from its folded trace", "< 1 s, 100 MB", lambda: checkerboard(SIDE)),
    "board-small": ("the same of 10 368 points", "as fast", lambda: checkerboard(12)),
    "search": ("1 000 layouts of 12 fields in a 3-D array, ranked", "< 2 s", lambda: twelve_fields(12)),
    "search-5": ("every layout of 5 fields in a 3-D array, ranked", "–", lambda: twelve_fields(5, 100_000)),
    "rewrite": ("three rules on 8e15 places, map composed and inverted", "–", lambda: rewriting(8 * 10**15)),
    "rewrite-small": ("the same on 8e3 places", "as fast", lambda: rewriting(8000)),
    "graph": ("field graph of 12 fields from the order of 1e9 accesses", "< 1 s", lambda: field_graph(1000)),
    "graph-small": ("the same of 1e6 accesses", "as fast", lambda: field_graph(1)),
    "plan": ("plans of 8 regions × 6 structures × 10 layouts", "< 1 s", lambda: plans(8, 6, 10)),
}


def run(name: str) -> Figures:
    """One row in this process; the time starts before the package is imported."""
    wall, cpu = time.perf_counter(), time.process_time()
    figures = ROWS[name][2]()
    figures["wall"], figures["cpu"] = time.perf_counter() - wall, time.process_time() - cpu
    status = Path("/proc/self/status").read_text()  # getrusage counts the parent's pages before exec
    figures["mb"] = int(re.findall(r"VmHWM:\s+(\d+)", status)[0]) / 1024
    return figures


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=3, help="runs of each row, of which the fastest counts")
    parser.add_argument("--row", choices=ROWS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.row:
        print(json.dumps(run(arguments.row)))
        return
    rows = []
    print("| what | asked | wall s | CPU s | MB | result |\n|---|---|---|---|---|---|")
    for name, (what, asked, _) in ROWS.items():
        command = [sys.executable, __file__, "--row", name]
        runs = [json.loads(subprocess.run(command, capture_output=True, check=True).stdout) for _ in range(arguments.repeat)]
        best = min(runs, key=lambda r: r["wall"])
        rows.append({"row": name, **{key: round(value, 4) for key, value in best.items()}})
        extra = ", ".join(f"{value:,} {key}" for key, value in best.items() if key not in ("wall", "cpu", "mb")) or "–"
        print(f"| {what} | {asked} | {best['wall']:.3f} | {best['cpu']:.3f} | {best['mb']:.0f} | {extra} |", flush=True)
    load = os.getloadavg()[0]
    print(f"\nload average of the machine {load:.1f}")
    (RESULTS / "algebra.json").write_text(json.dumps({"rows": rows, "load": round(load, 2)}, indent=1) + "\n")


if __name__ == "__main__":
    main()
