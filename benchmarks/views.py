"""When temporary structures of arrays pay: ``python benchmarks/views.py [KERNEL ...] [--sizes N,N] [--processes N]``.

``examples/sph_views`` has the kernels of Radtke and Weinzierl, annotated. Each is compiled by gcc and clang as it is, as
``layout-advise views`` writes it, and as that with ``--times``; with flags that leave no freedom of rounding (``exact``,
both versions must leave the same bytes) and with ``fast`` ones, by which sums become vectors (the sums of all results may
differ by ``ROUNDING``). Processes of both versions take turns. The speedup is that of a sweep over all cells, converting
included; the shares are those of converting in, computing and converting back in the version with views, beside table 2 of
the paper. ``pays from n`` is the smallest of the sizes from which on all larger ones gain; ``or calls``: how often one
conversion would have to be used for it to pay at the largest size.
Rows go to ``results/views/``.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from layout_advise.machine import describe
from layout_advise.mockup.timing.statistics import undisturbed_ratio

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "examples" / "sph_views" / "sph_views.cpp"
RESULTS = ROOT / "benchmarks" / "results" / "views"
COMPILERS = {"gcc": "g++", "clang": "clang++"}
FLAGS = {
    "exact": ("-O3", "-march=native", "-ffp-contract=off"),
    "fast": ("-O3", "-march=native", "-ffast-math"),
}
KERNELS = ("density_branch", "density_mask", "force_branch", "force_mask", "drift", "kick1", "kick2")
PAPER = {
    "density": (1.8, 97.5, 0.7),
    "force": (1.2, 98.4, 0.3),
    "drift": (47.8, 26.1, 26.1),
    "kick1": (28.1, 50.9, 21.0),
    "kick2": (32.5, 48.6, 18.9),
}
"""Percent of converting in, computing and back: table 2 of Radtke and Weinzierl (2025)."""
SIZES = (16, 64, 256, 1024)
PARTICLES = 4096
"""In all cells together: 1.2 MB, within the second cache as in the paper's tasks."""
SECONDS = 0.15
ROUNDING = 1e-9
"""Relative difference of sums that reassociation may leave in these kernels; they have at most 1024 terms of one sign."""
VIEW = re.compile(r"view \S+:\d+: in (\d+) ns, computing (\d+) ns, back (\d+) ns, (\d+) times, (\d+) elements")


def built(compiler: str, flags: str, folder: Path) -> dict[str, Path]:
    """The three programs: ``plain``, ``views`` and ``timed``."""
    programs = {}
    for version in ("plain", "views", "timed"):
        source = SOURCE if version == "plain" else folder / f"{version}.cpp"
        if not source.exists():
            command = [sys.executable, "-m", "layout_advise", "views", str(SOURCE), "-o", str(source)]
            command += ["--times"] if version == "timed" else []
            subprocess.run([*command, "--", "-std=c++17"], check=True, stderr=subprocess.DEVNULL)
        programs[version] = folder / f"{version}-{compiler}-{flags}"
        quiet = ("-Wno-attributes", "-Wno-unknown-attributes")
        if not programs[version].exists():
            command = [COMPILERS[compiler], "-std=c++17", *FLAGS[flags], *quiet, str(source), "-o", str(programs[version])]
            subprocess.run(command, check=True)
    return programs


def run(program: Path, *arguments: object) -> dict[str, Any]:
    """Results and times of one process."""
    done = subprocess.run([str(program), *map(str, arguments)], capture_output=True, text=True, check=True)
    words = done.stdout.split()
    shares = [tuple(map(int, found)) for found in VIEW.findall(done.stderr) if int(found[3])]
    sweep = float(re.search(r"sweep (\d+) ns", done.stderr)[1])  # type: ignore[index]
    return {"hash": words[1], "sum": float(words[3]), "sweep": sweep, "views": shares}


def row(kernel: str, compiler: str, size: int, processes: int, folder: Path) -> dict[str, Any]:
    """One kernel at one size by one compiler. Raises ValueError where the results of both versions differ."""
    exact, fast = (built(compiler, flags, folder) for flags in FLAGS)
    cells = max(PARTICLES // size, 1)
    few = {flags: [run(of[v], kernel, size, cells, 4) for v in ("plain", "views")] for flags, of in
           (("exact", exact), ("fast", fast))}  # fmt: skip
    if few["exact"][0]["hash"] != few["exact"][1]["hash"]:
        raise ValueError(f"{kernel} by {compiler}: the bytes differ")
    sums = [one["sum"] for pair in few.values() for one in pair]
    apart = max(abs(one / sums[0] - 1) for one in sums)
    if apart > ROUNDING:
        raise ValueError(f"{kernel} by {compiler}: sums differ by {apart:.1e}")
    found: dict[str, Any] = {
        "kernel": kernel,
        "compiler": compiler,
        "size": size,
        "apart": apart,
        "load": os.getloadavg()[0],
    }
    for flags, of in (("exact", exact), ("fast", fast)):
        calls = max(5, round(SECONDS * 1e9 / few[flags][0]["sweep"]))
        times: dict[str, list[float]] = {"plain": [], "views": []}
        shares = []
        for turn in range(processes):
            for version in ("plain", "views") if turn % 2 else ("views", "plain"):
                times[version].append(run(of[version], kernel, size, cells, calls)["sweep"])
            shares.append(share(run(of["timed"], kernel, size, cells, calls)["views"]))
        ratio = undisturbed_ratio(times["plain"], times["views"])
        parts = [median(one[k] for one in shares) for k in range(3)]
        found[flags] = {
            "speedup": [round(one, 3) for one in (ratio.median, ratio.lo, ratio.hi)],
            "plain_ns": min(times["plain"]),
            "views_ns": min(times["views"]),
            "shares": [round(100 * part, 1) for part in parts],
        }
    return found


def share(views: Sequence[Sequence[int]]) -> tuple[float, float, float]:
    """The parts of converting in, computing and back. Views of one kernel stand around the same loop, the inner one within
    the outer one's computing."""
    within = sum(one[0] for one in views), min(one[1] for one in views), sum(one[2] for one in views)
    return within[0] / sum(within), within[1] / sum(within), within[2] / sum(within)


def calls_to_pay(one: Mapping[str, Any]) -> str:
    """For how many sweeps one conversion has to serve before it gains."""
    before, out = one["plain_ns"], one["views_ns"]
    computing = out * one["shares"][1] / 100
    if computing >= before:
        return "never"
    return str(max(1, -int(-(out - computing) // (before - computing))))


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """All rows as Markdown."""
    sizes = sorted({one["size"] for one in rows})
    head = " | ".join(f"n = {size}" for size in sizes)
    lines = [
        f"| kernel | by | flags | {head} | in / computing / back, % (n = {sizes[-1]}) | paper | pays from n | or calls |",
        "|---" * (len(sizes) + 7) + "|",
    ]
    for kernel, compiler in dict.fromkeys((one["kernel"], one["compiler"]) for one in rows):
        own = {one["size"]: one for one in rows if (one["kernel"], one["compiler"]) == (kernel, compiler)}
        for flags in FLAGS:
            cells = ["{:.2f} ({:.2f}–{:.2f})".format(*own[s][flags]["speedup"]) if s in own else "" for s in sizes]
            last = own[max(own)][flags]
            paper = next(values for name, values in PAPER.items() if kernel.startswith(name))
            texts = [" / ".join(f"{part:.1f}" for part in parts) for parts in (last["shares"], paper)]
            pays: int | None = None
            for size in sorted(own, reverse=True):
                if own[size][flags]["speedup"][1] <= 1:
                    break
                pays = size
            after = [*cells, *texts, str(pays or "none"), calls_to_pay(last)]
            lines.append(f"| {kernel} | {compiler} | {flags} | {' | '.join(after)} |")
    worst = max((one["apart"] for one in rows), default=0.0)
    lines.append(f"\n{len(rows)} rows; exact: the same bytes in all; fast: sums apart by {worst:.1e} at most")
    return "\n".join(lines)


def main() -> int:
    """Measures the kernels named, or all; prints the table of all results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    every = [*KERNELS, *(f"{name}_scattered" for name in KERNELS)]
    parser.add_argument("kernels", nargs="*", metavar="KERNEL", help="(default: all, contiguous and scattered)")
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)), help="particles in a cell")
    parser.add_argument("--processes", type=int, default=5, metavar="N")
    parser.add_argument("--table", action="store_true", help="measure nothing, only print")
    given = parser.parse_args()
    RESULTS.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="views-") as name:
        for kernel in () if given.table else given.kernels or every:
            rows = [
                row(kernel, compiler, int(size), given.processes, Path(name))
                for compiler in COMPILERS
                for size in given.sizes.split(",")
            ]
            kept = {"machine": describe().cpu, "processes": given.processes, "rows": rows}
            (RESULTS / f"{kernel}.json").write_text(json.dumps(kept, indent=1) + "\n")
            print(
                kernel,
                [(one["compiler"], one["size"], one["fast"]["speedup"][0]) for one in rows],
                file=sys.stderr,
                flush=True,
            )
    print(table([one for file in sorted(RESULTS.glob("*.json")) for one in json.loads(file.read_text())["rows"]]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
