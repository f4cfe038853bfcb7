"""Kernels against themselves: ``python benchmarks/opencl/twice.py NAME [--processes N]``.

Times the tool's and the hand-written kernel of an entry of ``examples/opencl/hand`` as ``hand.py`` does, each twice
in each process, with buffers of its own each time. If a kernel differs from itself as it differs from the other one, the
place of its buffers makes the difference. Prints a Markdown table of ratios by process; nothing is kept.
"""

from __future__ import annotations

import sys

from hand import hand_layouts, versions

from examples import command_line
from layout_advise.mockup.timing.statistics import undisturbed_ratio
from layout_advise.opencl.host.platforms import devices
from layout_advise.opencl.measure.clock import clock_of
from layout_advise.opencl.measure.jobs import KernelJob, name_of
from layout_advise.opencl.measure.processes import over_processes, times_of

SECONDS = 0.5
PAIRS = (("tool over hand", 1, 2), ("tool over itself", 1, 3), ("hand over itself", 2, 4))


def main() -> int:
    """Measures one of the hand-written kernels."""
    parser = command_line(__doc__, processes=8)
    parser.add_argument("name", choices=sorted(hand_layouts()))
    given = parser.parse_args()
    device = devices(given.device)[0]
    clock = clock_of(device)
    first, tool, hand = versions(given.name)
    rows = over_processes(KernelJob(name_of(device), (first, tool, hand, tool, hand), SECONDS), given.processes)
    times = [times_of(rows, number, clock) for number in range(5)]
    print("| process | " + " | ".join(name for name, _, _ in PAIRS) + " |")
    print("|---" * (len(PAIRS) + 1) + "|")
    for process in range(given.processes):
        ratios = [f"{times[a][process] / times[b][process]:.3f}" for _, a, b in PAIRS]
        print(f"| {process + 1} | " + " | ".join(ratios) + " |")
    found = [undisturbed_ratio(times[a], times[b]) for _, a, b in PAIRS]
    print("| all | " + " | ".join(f"{one.median:.3f} ({one.lo:.3f}–{one.hi:.3f})" for one in found) + " |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
