"""Causes of the gains of layouts: ``python benchmarks/opencl/causes.py [EXAMPLE ...] [--device NAME] [--processes N]``.

Each of ``examples/opencl`` runs as it is, as a structure of arrays, and in the clusters of its field graph, over its own
data and over data that fits the second caches, and each of these with PoCL's work items as lanes of vectors (``loopvec``,
its rule) and without that (``POCL_WORK_GROUP_METHOD=loops``). A work item's time that is the same in both sizes is not
spent on waiting for memory; a gain that goes without vectors came of what vectors cost with records (gathers and
scatters). Fresh processes, all versions interleaved in each, the time that the processes ran. Prints a Markdown table;
rows go to ``results/opencl/``.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from math import prod
from pathlib import Path

from tiles import clusters_of_graph

from examples import EXAMPLES, RESULTS, command_line, spread
from layout_advise.mockup.timing.statistics import undisturbed_ratio
from layout_advise.opencl.candidates import key
from layout_advise.opencl.host.launch import Launch
from layout_advise.opencl.host.platforms import devices
from layout_advise.opencl.host.spec import read_spec
from layout_advise.opencl.host.variants import original, variant
from layout_advise.opencl.measure.jobs import DeviceName, KernelJob, name_of
from layout_advise.opencl.measure.processes import over_processes, times_of
from layout_advise.opencl.records import records_of
from layout_advise.opencl.rewrite.layouts import layout
from layout_advise.opencl.source.read import read_program

SMALL = {
    "nbody": {"4096": "1024"},
    "bitonic": {"1048576": "65536", "524288": "32768"},
    "boxes": {"65536": "16384", "1024": "256"},
    "options": {"1048576": "32768"},
    "sampo": {"1048576": "16384"},
    "kmeans": {"262144": "16384"},
    "heat": {"1048576": "65536", "1024": "256"},
    "diffusion": {"1048576": "16384", "1024": "128"},
}
"""Numbers of the specs that make their data at most 1 MiB, a second cache of one core."""
SECONDS = 0.3


def launch_of(name: str, small: bool) -> Launch:
    """The launch of an example over its own data, or over little of it."""
    text = (EXAMPLES / f"{name}.toml").read_text()
    for number, less in SMALL[name].items() if small else ():
        text = text.replace(number, less)
    with tempfile.TemporaryDirectory() as folder:
        spec = Path(folder, f"{name}.toml")
        spec.write_text(text)
        return read_spec(EXAMPLES / f"{name}.cl", spec)


def measured(name: str, device: DeviceName, processes: int, small: bool, vectors: bool) -> dict[str, object]:
    """Nanoseconds of a work item, and the gains of both layouts."""
    os.environ["POCL_WORK_GROUP_METHOD"] = "loopvec" if vectors else "loops"
    launch = launch_of(name, small)
    program = read_program(launch.source, launch.options, launch.name)
    records = [one.graph for one in records_of(program, [launch]) if one.note is None]
    single = tuple(
        layout(record, tuple((k,) for k in range(len(record.members))), (1,) * len(record.members))
        for record in (one.graph.record for one in records)
    )
    clusters = clusters_of_graph(records)
    layouts = {"arrays": single, "clusters": clusters}
    wanted = {word: choice for word, choice in layouts.items() if not all(one.is_original for one in choice)}
    same = key(single) == key(clusters)
    variants = (original([launch]), *(variant(word, program, [launch], choice) for word, choice in wanted.items()))
    with tempfile.TemporaryDirectory() as cache:  # of its own: the compiled kernels are those of this method
        os.environ["POCL_CACHE_DIR"] = cache
        rows = over_processes(KernelJob(device, variants, SECONDS), processes)
    base = times_of(rows, 0, "cpu")
    gains = {word: spread(undisturbed_ratio(base, times_of(rows, k, "cpu"))) for k, word in enumerate(wanted, 1)}
    return {"ns": min(base) / launch.calls / prod(launch.global_size), "same": same, **gains}


CASES = {
    "full": ("own data", False, True),
    "small": ("small data", True, True),
    "full_loops": ("own data, no vectors", False, False),
    "small_loops": ("small data, no vectors", True, False),
}


def table(rows: list[dict[str, object]]) -> str:
    """The rows as Markdown."""
    heads = [f"{told}: ns an item; arrays; clusters" for told, _, _ in CASES.values()]
    lines = ["| example | " + " | ".join(heads) + " |", "|---" * (len(CASES) + 1) + "|"]
    for row in rows:
        cells = []
        for case in CASES:
            one = row[case]
            assert isinstance(one, dict)
            gains = [f"{one[word][0]:.2f}" if word in one else "–" for word in ("arrays", "clusters")]
            cells.append(f"{one['ns']:.3g}; {gains[0]}; {gains[1]}")
        lines.append(f"| {row['example']} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> int:
    """Measures the examples named, or all of them."""
    parser = command_line(__doc__)
    parser.add_argument("examples", nargs="*", metavar="EXAMPLE")
    given = parser.parse_args()
    device = name_of(devices(given.device)[0])
    rows: list[dict[str, object]] = []
    for name in given.examples or SMALL:
        row: dict[str, object] = {"example": name, "device": device.name}
        for case, (_, small, vectors) in CASES.items():
            row[case] = measured(name, device, given.processes, small, vectors)
            print(f"{name} {case}: {row[case]}", file=sys.stderr, flush=True)
        rows.append(row)
        Path(RESULTS / f"causes-{name}.json").write_text(json.dumps(row, indent=1, ensure_ascii=False) + "\n")
    print(table(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
