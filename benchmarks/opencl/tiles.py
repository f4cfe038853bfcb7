"""Tiles with and without a device's calibration: ``python benchmarks/opencl/tiles.py [EXAMPLE ...] [--device NAME]``.

For the clusters that the field graph of each of ``examples/opencl`` has, the original order of records (no tiles), the tile
that the search tries first without a calibration (64), the tiles that the calibration's tree says for each cluster, and all
tiles from 4 to 4096 run in fresh processes, interleaved. A row has the time of each of the three over the best one's: what
it would cost to take that tile unseen. On a device that is the processor, times are those that the process was running.
Prints a Markdown table; rows go to ``results/opencl/``.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from examples import EXAMPLES, RESULTS, command_line, spread
from layout_advise.mockup.timing.statistics import Ratio, undisturbed_ratio
from layout_advise.opencl.candidates import Choice, GraphOfRecord, key, same_tile, with_tiles
from layout_advise.opencl.host.platforms import devices
from layout_advise.opencl.host.spec import read_spec
from layout_advise.opencl.host.variants import KernelVariant, original, variant
from layout_advise.opencl.measure.clock import Clock, clock_of
from layout_advise.opencl.measure.jobs import KernelJob, name_of
from layout_advise.opencl.measure.processes import over_processes, times_of
from layout_advise.opencl.policy import OPENCL
from layout_advise.opencl.records import records_of
from layout_advise.opencl.rewrite.layouts import layout
from layout_advise.opencl.source.read import read_program
from layout_advise.opencl.tiles.choose import by_tree
from layout_advise.opencl.tiles.samples import TILES
from layout_advise.opencl.tiles.stored import Calibration, stored

SECONDS = 0.3


def clusters_of_graph(records: list[GraphOfRecord]) -> Choice:
    """The clusters of each record's graph, not in tiles."""
    return tuple(layout(one.graph.record, groups := one.partitions()[0], (1,) * len(groups)) for one in records)


def tiled(records: list[GraphOfRecord], calibration: Calibration) -> dict[str, Choice]:
    """The layouts by name: without tiles, the tree's tiles, then each tile for all clusters."""
    plain = clusters_of_graph(records)
    found = {"none": plain, "tree": with_tiles(plain, records, by_tree(calibration.tree))}
    longest = min(one.elements for one in records)
    return found | {str(t): with_tiles(plain, records, same_tile(t)) for t in TILES if 1 < t <= longest}


def compared(name: str, device: object, processes: int, clock: Clock) -> dict[str, object]:
    """The row of one example."""
    calibration = stored(device)
    if calibration is None:
        sys.exit("no calibration of this device: layout-advise calibrate --device")
    launch = read_spec(EXAMPLES / f"{name}.cl", EXAMPLES / f"{name}.toml")
    program = read_program(launch.source, launch.options, launch.name)
    records = [one.graph for one in records_of(program, [launch]) if one.note is None]
    named = tiled(records, calibration)
    distinct: dict[object, int] = {}
    made: list[KernelVariant] = [original([launch])]
    for word, choice in named.items():
        if distinct.setdefault(key(choice), len(made)) == len(made):
            made.append(variant(word, program, [launch], choice))
    number = {word: distinct[key(choice)] for word, choice in named.items()}
    rows = over_processes(KernelJob(name_of(device), tuple(made), SECONDS), processes)
    for outcome in (one for row in rows for one in row):
        if problem := outcome.problem or (outcome.compared.problem if outcome.compared is not None else ""):
            raise ValueError(f"{name}: {problem}")
    times = [times_of(rows, k, clock) for k in range(len(made))]
    best = min(range(1, len(made)), key=lambda k: sorted(times[k])[len(times[k]) // 2])

    def over_best(word: str) -> Ratio:
        return undisturbed_ratio(times[number[word]], times[best])

    return {
        "example": name,
        "device": calibration.device,
        "clusters": "; ".join(one.label for one in named["none"]),
        "tree_tiles": [list(one.tiles) for one in named["tree"]],
        "best": next(word for word, k in number.items() if k == best),
        **{word: spread(over_best(word)) for word in ("tree", str(OPENCL.first_tiles), "none") if word in number},
    }


def table(rows: list[dict[str, object]]) -> str:
    """The rows as Markdown."""
    first = str(OPENCL.first_tiles)
    heads = ("example", "clusters of the graph", "best tile", "the tree's tiles")
    lines = [f"| {' | '.join(heads)} | tree over best | {first} over best | none over best |", "|---" * 7 + "|"]
    for row in rows:
        ratios = [row.get(word) for word in ("tree", first, "none")]
        told = [f"{one[0]:.2f} ({one[1]:.2f}–{one[2]:.2f})" if isinstance(one, list) else "" for one in ratios]
        cells = (row["example"], row["clusters"], row["best"], row["tree_tiles"], *told)
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines)


def main() -> int:
    """Measures the examples named, or all of them."""
    parser = command_line(__doc__)
    parser.add_argument("examples", nargs="*", metavar="EXAMPLE")
    given = parser.parse_args()
    device = devices(given.device)[0]
    clock = clock_of(device)
    rows = []
    for name in given.examples or sorted(file.stem for file in EXAMPLES.glob("*.cl")):
        rows.append(compared(name, device, given.processes, clock))
        Path(RESULTS / f"tiles-{name}.json").write_text(json.dumps(rows[-1], indent=1, ensure_ascii=False) + "\n")
        print(f"{name}: done", file=sys.stderr, flush=True)
    print(table(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
