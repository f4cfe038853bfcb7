"""The OpenCL examples, where results go, and a command line and rows as all these benchmarks have them."""

from __future__ import annotations

import argparse
from pathlib import Path

from layout_advise.mockup.timing.statistics import Ratio

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples" / "opencl"
RESULTS = ROOT / "benchmarks" / "results" / "opencl"


def command_line(doc: str | None, *, processes: int = 5) -> argparse.ArgumentParser:
    """A command line with the device and the number of processes, by default ``processes``; ``doc`` is its help."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="", metavar="NAME")
    parser.add_argument("--processes", type=int, default=processes, metavar="N")
    return parser


def spread(ratio: Ratio) -> list[float]:
    """A ratio as median, lower and upper end."""
    return [round(ratio.median, 4), round(ratio.lo, 4), round(ratio.hi, 4)]
