"""What tracing costs: ``python benchmarks/tracing.py``.

*inside*: thread CPU time of the traced call over that of the untraced one, in forks of the program parked at its third call,
with the pages that the call writes copied before either. *in a fresh fork*: the traced call as the tool makes it, over the
same call without records (the clone with a full buffer) in a fresh fork as well: there the kernel copies every page at the
first store to it, traced or not. What that takes (the call without records in a fresh fork less the same with all pages
copied) is the row *copying of pages*, in times of the untraced call; it is no part of the tracing. *outside*: CPU time of a
whole run with the agent loaded and its probe armed, but passing every call, over that without it; of alternating runs the
first decile counts. What the agent takes once, at the program's start, has a row of its own.
*folding*: 10 million references. *file*: the folded trace of one call at the example's default size.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from layout_advise.observe.observe import observe
from layout_advise.tracer.backends.clone.address import choose_address
from layout_advise.tracer.backends.clone.image import build_clone
from layout_advise.tracer.folding.fold import fold_records
from layout_advise.tracer.process.launch import fixed_addresses
from layout_advise.tracer.process.patching import Entry
from layout_advise.tracer.process.stopped_program import CloneImage, Range
from layout_advise.tracer.program.binary import ElfBinary
from layout_advise.tracer.sampling.probe import probe
from layout_advise.tracer.snapshot.agent_process import AgentProcess
from layout_advise.tracer.snapshot.park import park
from layout_advise.tracer.trace.trace_file import write_trace

ROOT = Path(__file__).resolve().parent.parent
RESULTS = Path(__file__).resolve().parent / "results"
FLAGS = ("O2", "O3-haswell")
HOTSPOTS = {
    "particles": "update_pressure",
    "wave": "wave_step",
    "lattice": "multiply",
    "daxpy": "daxpy",
    "pixels": "grade",
}
INSIDE = ("particles", "wave", "lattice")
OUTSIDE = {"particles": ("5000", "3000"), "wave": ("80", "3000"), "lattice": ("6", "10000")}
"""Sizes in the L2, and steps for some 0.4 s: many short runs find a moment in which nobody disturbs them, and what others do
to the last cache does not matter. There are some ten thousand passed calls a second."""
OUTSIDE_RUNS = 4
PAGE = os.sysconf("SC_PAGE_SIZE")
CALL = 3
CAP = 64 << 20
REFERENCES = 10_000_000
TINY_CALLS = 20_000_000
TINY = """
#include <stdlib.h>
__attribute__((noipa)) long tiny(long x) { return x + 1; }
int main(int argc, char **argv) { long x = argc; for (long i = atol(argv[1]); i > 0; i--) x = tiny(x); return x == 0; }
"""

Row = dict[str, Any]


def row(what: str, value: float, unit: str, limit: float | None, note: str = "") -> Row:
    """One line of the table; ``limit`` is what the value may be at most."""
    met = None if limit is None else value <= limit
    return {"what": what, "value": value, "unit": unit, "limit": limit, "met": met, "note": note}


def entry_of(path: Path, symbol: str) -> Entry:
    """Where to stop."""
    binary = ElfBinary.open(path)
    function = binary.find(symbol)
    return Entry(path, function.start, binary.read(function.start, function.size), symbol)


def traced_ns(program: AgentProcess, image: CloneImage, own: Sequence[Range] | None, folder: Path, cap: int = CAP) -> float:
    """The traced call in a fork; with ``own``, the pages there are copied before. With ``cap`` 1 it is not recorded."""
    with program.fork() as child:
        if own is not None:
            child.prepare(0, own)
        _, truncated = child.trace(image, folder / "records", cap)
        if truncated != (cap == 1) or child.traced_ns is None:
            raise SystemExit("the trace was cut, or not")
        return child.traced_ns


def inside(example: str, flags: str, rounds: int) -> list[Row]:
    """Slowdown of one call, and the size of its folded trace."""
    path = ROOT / "examples" / example / "bin" / flags / example
    name = f"{example} {flags}"
    binary = ElfBinary.open(path)
    with (
        park([str(path)], entry_of(path, HOTSPOTS[example]), CALL, timeout=120) as program,
        tempfile.TemporaryDirectory(dir="/dev/shm") as temporary,
    ):
        folder = Path(temporary)
        region = binary.region(binary.find(HOTSPOTS[example]), program.load_base, callees=True)
        seen = observe(program, binary, region, CALL, CAP)
        write_trace(seen.trace, folder / "trace")
        size = (folder / "trace").stat().st_size
        cut = "truncated" if seen.trace.truncated else "not truncated"
        rows = [row(f"file: {name}", size / 1000, "kB", 100, f"{seen.trace.accesses} references, {cut}")]
        if example not in INSIDE:
            return rows
        image = build_clone(region, choose_address(program.mappings(), region.entry))
        ratios, forked, natives, copied = [], [], [], []
        with program.fork() as native:
            native.prepare(0, seen.written)
            for _ in range(rounds):
                plain = statistics.median(s.cpu_ns for s in native.block(0, 5)[0][1:])
                natives.append(plain)
                ratios.append(traced_ns(program, image, seen.written, folder) / plain)
                fresh = traced_ns(program, image, None, folder, 1)
                forked.append(traced_ns(program, image, None, folder) / fresh)
                copied.append((fresh - traced_ns(program, image, seen.written, folder, 1)) / plain)
    note = f"untraced {statistics.median(natives) / 1e6:.2f} ms"
    pages = sum(-(-r.end // PAGE) - r.start // PAGE for r in seen.written)
    return [
        row(f"inside: {name}", statistics.median(ratios), "x", 8, note),
        row(f"inside, in a fresh fork: {name}", statistics.median(forked), "x", 8, "over the same without records"),
        row(f"copying of pages: {name}", statistics.median(copied), "x", None, f"at most {pages} pages, traced or not"),
        *rows,
    ]


def plain_seconds(command: Sequence[str]) -> float:
    """CPU seconds of a run without the agent, started the way the tool starts it."""
    before = children_seconds()
    full = [*fixed_addresses(), "/usr/bin/env", *command]
    subprocess.run(full, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=False)
    return children_seconds() - before


def armed_seconds(command: Sequence[str], entry: Entry) -> tuple[float, int]:
    """CPU seconds of a run with the probe armed and every call passed, and how many calls there were."""
    before = children_seconds()
    calls = probe(command, entry, timed=0).calls
    return children_seconds() - before, calls


def children_seconds() -> float:
    """User and system time of all ended children."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def outside(example: str, flags: str, rounds: int) -> Row:
    """CPU time of the whole program with every call passed, the first decile of all runs over that without. A round is
    ``OUTSIDE_RUNS`` times plain, armed, armed, plain: which of two runs comes first matters by itself (the second finds
    memory just given back)."""
    path = ROOT / "examples" / example / "bin" / flags / example
    entry, command = entry_of(path, HOTSPOTS[example]), [str(path), *OUTSIDE[example]]
    plain_seconds(command)
    plain, armed, calls = [], [], 0
    for _ in range(rounds * OUTSIDE_RUNS):
        plain.append(plain_seconds(command))
        for _ in range(2):
            seconds, calls = armed_seconds(command, entry)
            armed.append(seconds)
        plain.append(plain_seconds(command))
    least, usual = (np.quantile(armed, q) / np.quantile(plain, q) for q in (0.1, 0.5))
    note = f"{calls} calls, {min(plain):.2f} s, {len(plain)} runs each; medians {usual:.3f}"
    return row(f"outside: {example} {flags}", float(least), "x", 1.02, note)


def passing(folder: Path, rounds: int) -> Row:
    """What one passed call of the emptiest function costs more than without the agent."""
    source, program = folder / "tiny.c", folder / "tiny"
    source.write_text(TINY)
    subprocess.run(["gcc", "-O2", "-o", str(program), str(source)], check=True)
    entry, command = entry_of(program, "tiny"), [str(program), str(TINY_CALLS)]
    costs = []
    for _ in range(rounds):
        without = plain_seconds(command)
        seconds, calls = armed_seconds(command, entry)
        if calls != TINY_CALLS:
            raise SystemExit("calls were missed")
        costs.append((seconds - without) / TINY_CALLS * 1e9)
    return row("passed call", statistics.median(costs), "ns", 10, f"{TINY_CALLS} calls of an empty function")


def starting(folder: Path, rounds: int) -> Row:
    """What the agent takes at the start of a program, by runs of one that makes a single call."""
    entry, command = entry_of(folder / "tiny", "tiny"), [str(folder / "tiny"), "1"]
    plain = min(plain_seconds(command) for _ in range(10 * rounds))
    armed = min(armed_seconds(command, entry)[0] for _ in range(10 * rounds))
    return row("start of the agent", (armed - plain) * 1e3, "ms", None, f"{plain * 1e3:.2f} ms without it")


def folding(rounds: int) -> list[Row]:
    """Seconds to fold, best of ``rounds``."""
    index = np.arange(REFERENCES, dtype=np.uint64)
    site = (index % np.uint64(4)) << np.uint64(48)
    regular = site | (np.uint64(1 << 32) + index // np.uint64(4) * np.uint64(80) + (index % np.uint64(4)) * np.uint64(8))
    spots = np.random.default_rng(1).integers(0, 1_000_000, REFERENCES, dtype=np.uint64)
    random = site | (np.uint64(1 << 32) + spots * np.uint64(8))
    rows = []
    for name, records, limit in (("regular", regular, 0.3), ("random", random, 2.0)):
        seconds = []
        for _ in range(rounds):
            start = time.monotonic()
            fold_records(records, 4)
            seconds.append(time.monotonic() - start)
        rows.append(row(f"folding: 10 M references, {name}", min(seconds), "s", limit))
    return rows


def table(rows: Sequence[Row]) -> str:
    """All rows as Markdown."""
    lines = ["| what | value | at most | met | |", "|---|---|---|---|---|"]
    for r in rows:
        limit = "–" if r["limit"] is None else f"{r['limit']:g} {r['unit']}"
        met = "–" if r["met"] is None else "yes" if r["met"] else "**no**"
        lines.append(f"| {r['what']} | {r['value']:.3g} {r['unit']} | {limit} | {met} | {r['note']} |")
    return "\n".join(lines)


def main() -> int:
    """Measure everything, write the rows, print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5, help="rounds of each measurement (default: 5)")
    rounds = parser.parse_args().rounds
    subprocess.run(["make", "-s", "-C", str(ROOT / "examples")], check=True)
    rows: list[Row] = []
    for flags in FLAGS:
        for example in HOTSPOTS:
            print(f"{example} {flags} …", file=sys.stderr)
            rows += inside(example, flags, rounds)
            if example in INSIDE:
                rows.append(outside(example, flags, rounds))
    with tempfile.TemporaryDirectory() as folder:
        rows.append(passing(Path(folder), min(rounds, 3)))
        rows.append(starting(Path(folder), min(rounds, 3)))
    rows += folding(min(rounds, 3))
    ratios = [each["value"] for each in rows if each["what"].startswith("outside: ")]
    rows.append(row("outside: all of these", statistics.geometric_mean(ratios), "x", 1.02, "geometric mean"))
    busy = os.getloadavg()[0]
    rows.append(
        row("load average of the machine", busy, "", None, "well above 1: wall times (outside, folding) are disturbed")
    )
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "tracing.json").write_text(json.dumps(rows, indent=1) + "\n")
    print(table(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
