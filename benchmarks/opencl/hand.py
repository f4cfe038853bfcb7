"""Predicted against hand-written kernels: ``python benchmarks/opencl/hand.py [NAME ...] [--device NAME] [--processes N]``.

``examples/opencl/hand`` has kernels as a person would write them, with the layout of each in ``layouts.toml``. For each of
them one job times the original, the tool's rewritten kernel for the same layout (what is predicted) and the hand-written
one, interleaved call by call, in each of some fresh processes; all must leave the bytes that the original leaves. What a
row says is the predicted speedup over the hand-written one, and its interval over the processes: the time of the original
falls out of it. On a device that is the processor, times are those that the process was running, all threads together
(``--clock device`` for the device's events): other work on the machine lengthens them less. Prints a Markdown table with the
median error; rows go to ``results/opencl/``.
"""

from __future__ import annotations

import json
import sys
import tomllib
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from examples import EXAMPLES, RESULTS, command_line, spread
from layout_advise.mockup.timing.statistics import undisturbed_ratio
from layout_advise.opencl.host.platforms import devices
from layout_advise.opencl.host.spec import read_spec
from layout_advise.opencl.host.variants import KernelVariant, original, variant, written
from layout_advise.opencl.measure.clock import Clock, clock_of
from layout_advise.opencl.measure.jobs import DeviceName, KernelJob, name_of
from layout_advise.opencl.measure.processes import over_processes, times_of
from layout_advise.opencl.rewrite.layouts import BufferLayout, layout
from layout_advise.opencl.source.kernels import KernelProgram
from layout_advise.opencl.source.read import read_program

HAND = EXAMPLES / "hand"
SECONDS = 1.0
"""A process times each version for about so long."""


def hand_layouts() -> dict[str, dict[str, Any]]:
    """The layouts of the hand-written kernels, by the name of their file."""
    return tomllib.loads((HAND / "layouts.toml").read_text())


def layouts_of(program: KernelProgram, given: Mapping[str, Any]) -> list[BufferLayout]:
    """The layout of each record that is named."""
    found = []
    for record in program.records:
        if record.name in given:
            number = {member.name: k for k, member in enumerate(record.members)}
            clusters = [tuple(number[name] for name in text.split()) for text in given[record.name]["clusters"]]
            tiles = given[record.name].get("tiles", [1] * len(clusters))
            found.append(layout(record, tuple(clusters), tiles))
    return found


def versions(name: str) -> tuple[KernelVariant, KernelVariant, KernelVariant]:
    """The original, the tool's kernel for the layout of a hand-written one, and that one."""
    given = hand_layouts()[name]
    example = given["example"]
    launch = read_spec(EXAMPLES / f"{example}.cl", EXAMPLES / f"{example}.toml")
    program = read_program(launch.source, launch.options, launch.name)
    layouts = layouts_of(program, given)
    source = (HAND / f"{name}.cl").read_text()
    by_hand = written("hand", program, [launch], layouts, source, launch.options)
    return original([launch]), variant("tool", program, [launch], layouts), by_hand


def compared(name: str, device: DeviceName, processes: int, clock: Clock) -> dict[str, Any]:
    """The row of one hand-written kernel. Raises ValueError where a version does not compute the same."""
    made = versions(name)
    rows = over_processes(KernelJob(device, made, SECONDS), processes)
    for row in rows:
        for one, outcome in zip(made, row, strict=True):
            problem = outcome.problem or (outcome.compared.problem if outcome.compared is not None else "")
            if problem:
                raise ValueError(f"{name}: {one.id}: {problem}")
    base, tool, hand = (times_of(rows, k, clock) for k in range(3))
    return {
        "name": name,
        "device": device.name,
        "layout": "; ".join(one.label for one in made[1].layouts),
        "processes": processes,
        "clock": clock,
        "predicted": spread(undisturbed_ratio(base, tool)),
        "by_hand": spread(undisturbed_ratio(base, hand)),
        "predicted_over_hand": spread(undisturbed_ratio(hand, tool)),
    }


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """The rows as Markdown, with the median error."""
    lines = ["| kernel by hand | layout | predicted | by hand | predicted over by hand |", "|---|---|---|---|---|"]
    for row in rows:
        cells = [f"{m:.2f} ({lo:.2f}–{hi:.2f})" for m, lo, hi in (row["predicted"], row["by_hand"])]
        m, lo, hi = row["predicted_over_hand"]
        lines.append(f"| {row['name']} | {row['layout']} | {cells[0]} | {cells[1]} | {m:.3f} ({lo:.3f}–{hi:.3f}) |")
    errors = sorted(abs(row["predicted_over_hand"][0] - 1) for row in rows)
    if errors:
        lines.append(f"\n{len(errors)} rows, median error {median(errors):.1%}, worst {errors[-1]:.1%}")
    return "\n".join(lines)


def main() -> int:
    """Measures the kernels named, or all; prints the table of all results."""
    parser = command_line(__doc__, processes=7)
    parser.add_argument("names", nargs="*", metavar="NAME", help="of examples/opencl/hand (default: all)")
    parser.add_argument("--clock", choices=("cpu", "device"), help="default: cpu where the device is the processor")
    parser.add_argument("--table", action="store_true", help="measure nothing, only print")
    given = parser.parse_args()
    RESULTS.mkdir(parents=True, exist_ok=True)
    for name in () if given.table else given.names or hand_layouts():
        device = devices(given.device)[0]
        clock: Clock = given.clock or clock_of(device)
        row = compared(name, name_of(device), given.processes, clock)
        (RESULTS / f"hand-{name}.json").write_text(json.dumps(row, indent=1, ensure_ascii=False) + "\n")
        print(name, row["predicted"], row["by_hand"], row["predicted_over_hand"], file=sys.stderr, flush=True)
    print(table([json.loads(file.read_text()) for file in sorted(RESULTS.glob("hand-*.json"))]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
