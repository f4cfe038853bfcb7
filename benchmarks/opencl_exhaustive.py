"""The layout that the search chooses, of at most twelve that it measures, against the best of all partitions × tiles.

    python benchmarks/opencl_exhaustive.py [EXAMPLE ...] [--device NAME] [--processes N]

All layouts of the records of ``examples/opencl`` that differ in what the kernel accesses: every partition of the accessed
members (those that are not accessed are one member more), and every tile of ``TILES`` for the clusters with several members,
the same one for all of them. They race: in batches beside the original, then those within a quarter of the best again, and
the last six, the chosen one and the original in fresh processes, all interleaved. Only these times are in the table. An
example with more than ``MOST`` layouts is left out and told. Prints a Markdown table; rows go to ``results/opencl/``.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path

from layout_advise.layoutalgebra.explore.partitions import Partition, partition
from layout_advise.mockup.timing.statistics import Ratio, undisturbed_ratio
from layout_advise.opencl.candidates import Choice, GraphOfRecord, key
from layout_advise.opencl.host.launch import Launch
from layout_advise.opencl.host.platforms import devices
from layout_advise.opencl.host.spec import read_spec
from layout_advise.opencl.host.variants import KernelVariant, original, variant
from layout_advise.opencl.measure.jobs import DeviceName, KernelJob, name_of
from layout_advise.opencl.measure.processes import outcomes_apart, over_processes, times_of
from layout_advise.opencl.rewrite.layouts import layout
from layout_advise.opencl.search import DeviceSearch
from layout_advise.opencl.source.kernels import KernelProgram
from layout_advise.opencl.source.read import read_program
from layout_advise.opencl.study import records_of
from layout_advise.opencl.verdict import verdict, winner

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = ROOT / "examples" / "opencl"
RESULTS = ROOT / "benchmarks" / "results" / "opencl"
TILES = (1, 8, 64, 256)
MOST = 5000
BATCH = 24
KEPT = 24
LAST = 6
NEAR = 0.8
"""Layouts at least so fast as the best of the race, in its part, race again."""


def partitions(items: Sequence[tuple[int, ...]]) -> Iterator[Partition]:
    """Every partition of items, each some members that stay together."""
    if not items:
        yield ()
        return
    first, rest = items[0], items[1:]
    for groups in partitions(rest):
        yield (first, *groups)
        for k, group in enumerate(groups):
            yield (*groups[:k], (*first, *group), *groups[k + 1 :])


def all_choices(records: Sequence[GraphOfRecord], tiles: Sequence[int]) -> list[Choice]:
    """Every layout of all records but the program's own."""
    own: list[list[Partition]] = []
    for one in records:
        members = list(enumerate(one.graph.record.members))
        rest = tuple(k for k, m in members if m.name not in one.graph.accessed)
        items = [(k,) for k, m in members if m.name in one.graph.accessed]
        own.append([partition(groups) for groups in partitions([*items, *([rest] if rest else [])])])
    found: dict[tuple[object, ...], Choice] = {}
    for groups, tile in product(product(*own), tiles):
        pairs = zip(records, groups, strict=True)
        choice = tuple(layout(one.graph.record, parts, (tile,) * len(parts)) for one, parts in pairs)
        if not all(one.is_original for one in choice):
            found.setdefault(key(choice), choice)
    return list(found.values())


def raced(
    program: KernelProgram, launch: Launch, choices: Sequence[Choice], device: DeviceName, seconds: float
) -> list[tuple[float, Choice]]:
    """Choices with their speedup in one process a batch, the fastest first; those that do not run or differ are left out."""
    found: list[tuple[float, Choice]] = []
    for at in range(0, len(choices), BATCH):
        batch = choices[at : at + BATCH]
        made = [variant(f"v{at + k}", program, [launch], one) for k, one in enumerate(batch)]
        first, *others = outcomes_apart(KernelJob(device, (original([launch]), *made), seconds))
        for one, outcome in zip(batch, others, strict=True):
            if not outcome.problem and outcome.compared is not None and not outcome.compared.problem:
                found.append((first.device / outcome.device, one))
        print(f"\r{launch.name}: {at + len(batch)} of {len(choices)}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return sorted(found, key=lambda pair: -pair[0])


def label(choice: Choice) -> str:
    """The layout of each record."""
    return "; ".join(one.label for one in choice)


def compared(name: str, device: DeviceName, processes: int, tiles: Sequence[int]) -> dict[str, object]:
    """The row of one example."""
    launch = read_spec(EXAMPLES / f"{name}.cl", EXAMPLES / f"{name}.toml")
    program = read_program(launch.source, launch.options, launch.name)
    records = [one.graph for one in records_of(program, [launch]) if one.note is None]
    choices = all_choices(records, tiles)
    row: dict[str, object] = {"example": name, "device": device.name, "layouts": len(choices), "tiles": list(tiles)}
    if len(choices) > MOST:
        return row
    search = DeviceSearch(program, [launch], records, device, lambda _text: None).run(processes)
    best = winner(search)
    # where no change is advised the program keeps what it has
    chosen = best.variant.layouts if best is not None and verdict(search, name).action == "change" else ()
    first = raced(program, launch, choices, device, 0.02)
    near = [one for gain, one in first[:KEPT] if gain >= NEAR * first[0][0]]
    last = [one for _, one in raced(program, launch, near, device, 0.2)][:LAST]
    variants: list[KernelVariant] = [original([launch])]
    variants += [variant(f"b{k}", program, [launch], one) for k, one in enumerate(last)]
    raced_keys = [(), *map(key, last)]
    own = raced_keys.index(key(chosen)) if key(chosen) in raced_keys else len(variants)
    if own == len(variants):
        variants.append(variant("chosen", program, [launch], chosen))
    rows = over_processes(KernelJob(device, tuple(variants), 0.6), processes)
    base = times_of(rows, 0)
    gains = [undisturbed_ratio(base, times_of(rows, k)) for k in range(len(variants))]
    # the original competes as well: to keep it may be the best
    top = max(range(len(last) + 1), key=lambda k: gains[k].median)
    against = undisturbed_ratio(times_of(rows, top), times_of(rows, own))
    row |= {
        "measured": len(search.tried),
        "best": label(last[top - 1]) if top else "the original",
        "best_gain": spread(gains[top]),
        "chosen": label(chosen) if chosen else "the original",
        "chosen_gain": spread(gains[own]),
        "chosen_over_best": spread(against),
    }
    return row


def spread(ratio: Ratio) -> list[float]:
    """A ratio as median, lower and upper end."""
    return [round(ratio.median, 4), round(ratio.lo, 4), round(ratio.hi, 4)]


def told(value: object) -> str:
    """A ratio in the table."""
    assert isinstance(value, list)
    return f"{value[0]:.2f} ({value[1]:.2f}–{value[2]:.2f})"


def table(rows: Sequence[dict[str, object]]) -> str:
    """The rows as Markdown."""
    lines = [
        "| example | layouts | measured | best of all | gain | chosen | gain | chosen over best |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        if "best" not in row:
            lines.append(f"| {row['example']} | {row['layouts']} | too many | | | | | |")
            continue
        cells = [row["example"], row["layouts"], row["measured"], row["best"], told(row["best_gain"]), row["chosen"],
                 told(row["chosen_gain"]), told(row["chosen_over_best"])]  # fmt: skip
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines)


def main() -> int:
    """Measures the examples named, or prints the table of those that were."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("examples", nargs="*", metavar="EXAMPLE", help="of examples/opencl; none: the table of the results")
    parser.add_argument("--device", default="", metavar="NAME")
    parser.add_argument("--processes", type=int, default=5, metavar="N")
    parser.add_argument("--tiles", default=",".join(map(str, TILES)), metavar="N,N", help="elements in a tile")
    given = parser.parse_args()
    tiles = [int(word) for word in given.tiles.split(",")]
    RESULTS.mkdir(parents=True, exist_ok=True)
    for name in given.examples:
        row = compared(name, name_of(devices(given.device)[0]), given.processes, tiles)
        (RESULTS / f"exhaustive-{name}.json").write_text(json.dumps(row, indent=1, ensure_ascii=False) + "\n")
    print(table([json.loads(file.read_text()) for file in sorted(RESULTS.glob("exhaustive-*.json"))]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
