"""The layout that the search chooses, of at most twelve that it measures, against the best of all partitions × tiles.

    python benchmarks/opencl/exhaustive.py [EXAMPLE ...] [--device NAME] [--processes N]

All layouts of the records of ``examples/opencl`` that differ in what the kernel accesses (``layouts.py``):
partitions of the members, and tiles for each cluster with several of them. They race in three rounds, in batches beside the
original: all of them, those near the best for longer, and the best of these longer still. The last six, the chosen one and
the original run in fresh processes, all interleaved, which say which one is the best. That one, the chosen one and the
original run once more, in other processes: only these times are in the table, as the best of several figures is a lucky one.
On a device that is the processor, times are those that the process was running, all threads together. An example with more
than ``--most`` layouts is left out and told. Members that are said to be alike are tried as well: some layouts, with members
exchanged. Prints a Markdown table; rows go to ``results/opencl/``.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from layouts import LayoutSpace, all_layouts

from examples import EXAMPLES, RESULTS, command_line, spread
from layout_advise.mockup.timing.statistics import undisturbed_ratio
from layout_advise.opencl.candidates import Choice, GraphOfRecord, key
from layout_advise.opencl.graph.steps import kernel_steps
from layout_advise.opencl.host.launch import Launch, checked_kernel
from layout_advise.opencl.host.platforms import devices
from layout_advise.opencl.host.spec import read_spec
from layout_advise.opencl.host.variants import KernelVariant, original, variant
from layout_advise.opencl.measure.clock import Clock, clock_of
from layout_advise.opencl.measure.jobs import DeviceName, KernelJob, name_of
from layout_advise.opencl.measure.processes import outcomes_apart, over_processes, times_of
from layout_advise.opencl.records import records_of
from layout_advise.opencl.search import DeviceSearch
from layout_advise.opencl.source.kernels import KernelProgram
from layout_advise.opencl.source.read import read_program
from layout_advise.opencl.verdict import verdict, winner

TILES = (1, 8, 64, 256)
MOST = 5000
BATCH = 24
PAIRS = 10
SEED = 2015


@dataclass(frozen=True, slots=True)
class Round:
    """A round of the race: each layout is timed for about so many ``seconds``; of those that are at least ``near`` times as
    fast as the best, so many are ``kept``."""

    seconds: float
    near: float
    kept: int


ROUNDS = (Round(0.02, 0.75, 96), Round(0.15, 0.85, 24), Round(0.5, 0.9, 6))


def raced(
    program: KernelProgram, launch: Launch, choices: Sequence[Choice], device: DeviceName, seconds: float, clock: Clock
) -> list[tuple[float, Choice]]:
    """Choices with their speedup in one process a batch, the fastest first; those that do not run or differ are left out."""
    found: list[tuple[float, Choice]] = []
    for at in range(0, len(choices), BATCH):
        batch = choices[at : at + BATCH]
        made = [variant(f"v{at + k}", program, [launch], one) for k, one in enumerate(batch)]
        first, *others = outcomes_apart(KernelJob(device, (original([launch]), *made), seconds))
        for one, outcome in zip(batch, others, strict=True):
            if not outcome.problem and outcome.compared is not None and not outcome.compared.problem:
                found.append((getattr(first, clock) / getattr(outcome, clock), one))
        print(f"\r{launch.name}: {at + len(batch)} of {len(choices)}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return sorted(found, key=lambda pair: -pair[0])


def label(choice: Choice) -> str:
    """The layout of each record."""
    return "; ".join(one.label for one in choice)


def race(
    program: KernelProgram, launch: Launch, choices: Sequence[Choice], device: DeviceName, clock: Clock
) -> list[tuple[float, Choice]]:
    """The last ones of a race over several rounds, the fastest first. In each, all that are left run again for longer."""
    left = list(choices)
    found: list[tuple[float, Choice]] = []
    for one in ROUNDS:
        found = raced(program, launch, left, device, one.seconds, clock)
        left = [choice for gain, choice in found[: one.kept] if gain >= one.near * found[0][0]]
    return found[: len(left)]


def compared(
    name: str, device: DeviceName, processes: int, tiles: Sequence[int], most: int, clock: Clock
) -> dict[str, object]:
    """The row of one example."""
    launch = read_spec(EXAMPLES / f"{name}.cl", EXAMPLES / f"{name}.toml")
    program = read_program(launch.source, launch.options, launch.name)
    records = [one.graph for one in records_of(program, [launch]) if one.note is None]
    steps = [kernel_steps(program, checked_kernel(program, launch))]
    space = all_layouts(records, steps, tiles, most)
    row: dict[str, object] = {"example": name, "device": device.name, "clock": clock, "tiles": list(tiles), **space.figures}
    if not space.choices:
        return row
    search = DeviceSearch(program, [launch], records, device, clock, lambda _text: None).run(processes)
    best = winner(search)
    # where no change is advised the program keeps what it has
    chosen = best.variant.layouts if best is not None and verdict(search, name).action == "change" else ()
    last = [one for _, one in race(program, launch, space.choices, device, clock)]
    variants: list[KernelVariant] = [original([launch])]
    variants += [variant(f"b{k}", program, [launch], one) for k, one in enumerate(last)]
    raced_keys = [(), *map(key, last)]
    own = raced_keys.index(key(chosen)) if key(chosen) in raced_keys else len(variants)
    if own == len(variants):
        variants.append(variant("chosen", program, [launch], chosen))
    first = _gains(variants, device, processes, clock)
    # the original competes as well: to keep it may be the best
    top = max(range(len(last) + 1), key=lambda k: first[k][0])
    again = [variants[0], variants[own], variants[top]]
    rows = over_processes(KernelJob(device, tuple(again), 0.6), processes)
    base, mine, best_times = (times_of(rows, k, clock) for k in range(3))
    same = own == top
    row |= {
        "measured": len(search.tried),
        "advice": verdict(search, name).action,
        "best": label(last[top - 1]) if top else "the original",
        "lucky_gain": first[top],
        "best_gain": spread(undisturbed_ratio(base, mine if same else best_times)) if top else [1.0] * 3,
        "chosen": label(chosen) if chosen else "the original",
        "chosen_gain": spread(undisturbed_ratio(base, mine)) if own else [1.0] * 3,
        "chosen_over_best": [1.0] * 3 if same else spread(undisturbed_ratio(best_times, mine)),
        "exchanged": exchanged(program, launch, records, space, device, clock),
    }
    return row


def _gains(variants: Sequence[KernelVariant], device: DeviceName, processes: int, clock: Clock) -> list[list[float]]:
    """The gains of all over the first, in fresh processes."""
    rows = over_processes(KernelJob(device, tuple(variants), 0.6), processes)
    base = times_of(rows, 0, clock)
    return [spread(undisturbed_ratio(base, times_of(rows, k, clock))) for k in range(len(variants))]


def exchanged(
    program: KernelProgram,
    launch: Launch,
    records: Sequence[GraphOfRecord],
    space: LayoutSpace,
    device: DeviceName,
    clock: Clock,
) -> list[float]:
    """Layouts drawn by chance, over those with members exchanged that are accessed alike: ratios of times, which should be
    1 if one of them stands for the other."""
    chance = random.Random(SEED)
    drawn = chance.sample(space.choices, min(PAIRS, len(space.choices)))
    pairs = [(one, other) for one in drawn if key(other := space.exchanged(one, records, chance)) != key(one)]
    made: list[KernelVariant] = [original([launch])]
    for number, choice in enumerate(one for pair in pairs for one in pair):
        made.append(variant(f"p{number}", program, [launch], choice))
    rows = over_processes(KernelJob(device, tuple(made), 0.3), 3)
    times = [min(times_of(rows, k, clock)) for k in range(len(made))]
    return [round(a / b, 4) for a, b in zip(times[1::2], times[2::2], strict=True)]


def told(value: object) -> str:
    """A ratio in the table."""
    assert isinstance(value, list)
    return f"{value[0]:.2f} ({value[1]:.2f}–{value[2]:.2f})"


def table(rows: Sequence[dict[str, object]]) -> str:
    """The rows as Markdown."""
    lines = [
        "| example | partitions | differ | raced | measured | best of all | gain | chosen | gain | chosen over best |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        cells = [row["example"], row.get("partitions", ""), row.get("that_differ", ""), row["layouts"]]
        if "best" not in row:
            lines.append("| " + " | ".join(map(str, cells)) + " | too many | | | | | |")
            continue
        cells += [row["measured"], row["best"], told(row["best_gain"]), row["chosen"]]
        cells += [told(row["chosen_gain"]), told(row["chosen_over_best"])]
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines)


def main() -> int:
    """Measures the examples named, or prints the table of those that were."""
    parser = command_line(__doc__)
    parser.add_argument("examples", nargs="*", metavar="EXAMPLE", help="of examples/opencl; none: the table of the results")
    parser.add_argument("--tiles", default=",".join(map(str, TILES)), metavar="N,N", help="elements in a tile")
    parser.add_argument("--most", type=int, default=MOST, metavar="N", help="no more layouts (default: %(default)s)")
    parser.add_argument("--clock", choices=("cpu", "device"), help="default: cpu where the device is the processor")
    given = parser.parse_args()
    tiles = [int(word) for word in given.tiles.split(",")]
    RESULTS.mkdir(parents=True, exist_ok=True)
    for name in given.examples:
        device = devices(given.device)[0]
        clock: Clock = given.clock or clock_of(device)
        row = compared(name, name_of(device), given.processes, tiles, given.most, clock)
        (RESULTS / f"exhaustive-{name}.json").write_text(json.dumps(row, indent=1, ensure_ascii=False) + "\n")
    print(table([json.loads(file.read_text()) for file in sorted(RESULTS.glob("exhaustive-*.json"))]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
