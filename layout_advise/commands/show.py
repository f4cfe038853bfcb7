"""Print the folded trace of a run: what each reference of the hotspot touched, which structures, in which loops.

  layout-advise show app.layout
  layout-advise show app.layout -n 0 -v        every reference, nests in full, bounds and objects below
  layout-advise show app.layout --json -       for scripts
  layout-advise show app.layout --csv app.csv  for spreadsheets and data frames (or --parquet)
  layout-advise show app.layout --chrome app.trace.json   for chrome://tracing and ui.perfetto.dev

A line is one memory operand of one instruction: its address, the source line (where the program is still the one that was
traced), what it does, how many bytes, how often, where:

  0x555555555818  particles.c:41  read  8  1,300,000  for 1300000 step 80 from 0x7ffff07c2028

is a loop of 1300000 that moves by 80 bytes. A nest around several accesses has braces; i, j, k ... are the indices of the
enclosing loops, outermost first. "random" is an access without order, known as a set.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from layout_advise.commands import common
from layout_advise.commands.folded.show_files import as_csv, write_parquet
from layout_advise.commands.folded.show_rows import NamedPlaces, Row, rows
from layout_advise.reports.pages.chrome_trace import events
from layout_advise.reports.pages.trace_text import (
    calls_text,
    control_text,
    heap_line,
    loop_lines,
    object_lines,
    team_control_lines,
    team_control_texts,
    unknown_text,
)
from layout_advise.reports.words.stream_words import stream_text
from layout_advise.rundir import find_trace, read_stages, run_of, write_atomically
from layout_advise.tracer.objects.sharing import find_sharing
from layout_advise.tracer.trace.trace import OTHERS, Trace
from layout_advise.tracer.trace.trace_file import checksum, read_what_is_there

LIMIT, NEST, ORDER, SHARED = 20, 100, 300, 16
"""Lines, characters of a nest and of the order of execution, and shared cache lines printed by default."""


def heading(trace: Trace) -> str:
    """The first line."""
    whole = "truncated" if trace.truncated or trace.limits else "one thread only" if trace.others else "complete"
    team = f" of {len(trace.threads)} threads" if trace.threads else ""
    return (
        f"{trace.symbol}, {calls_text(trace)}: {trace.accesses:,} accesses by {len(trace.references)} references{team}, "
        f"{whole} (backend {trace.backend})"
    )


def sharing_lines(trace: Trace, places: NamedPlaces, found: Sequence[Row]) -> list[str]:
    """Lines on the data that the threads of a team share, and the cache lines where they meet."""
    if not trace.threads:
        return []
    lines = ["", "accesses by thread"]
    for thread in trace.threads:
        mine = [row for row in found if row.reference.thread == thread.number]
        lines.append(f"{sum(row.count for row in mine):>14,}  thread {thread.number}")
        counts: dict[tuple[str, ...], int] = {}
        for row in mine:
            counts[row.objects] = counts.get(row.objects, 0) + row.count
        lines += [
            f"{count:>20,}  {' and '.join(names)}" for names, count in sorted(counts.items(), key=_descending) if count
        ]
    sharing = find_sharing(trace)
    true = f"{len(sharing.true):,} cache lines hold bytes that one thread writes and another uses"
    lines += ["", f"false sharing: {len(sharing.false):,} cache lines; {true}"]
    for line in sharing.false[:SHARED]:
        lines.append(f"  {line:#x}  {places.data(line)}")
    if len(sharing.false) > SHARED:
        lines.append(f"  {len(sharing.false) - SHARED:,} more")
    for row in (r for r in found if r.reference.id in sharing.users):
        where = row.source.short() if row.source else hex(row.reference.pc)
        count = sharing.users[row.reference.id]
        lines.append(
            f"  thread {row.reference.thread}: {row.reference.kind} of {row.reference.bytes} at {where}, {count:,} lines"
        )
    if sharing.skipped:
        lines.append(f"  {len(sharing.skipped)} references make too many accesses where threads meet and were not looked at")
    return lines


def _descending(item: tuple[tuple[str, ...], int]) -> tuple[int, tuple[str, ...]]:
    return -item[1], item[0]


def table(found: Sequence[Row], limit: int, verbose: bool) -> list[str]:
    """One line a reference (``limit`` of them, 0: all), columns aligned; with ``verbose`` bounds and objects below."""
    shown = found[:limit] if limit else found
    cells = [
        [
            f"{row.reference.pc:#x}",
            row.source.short() if row.source else row.function or "?",
            row.reference.kind if not row.team else f"thread {row.reference.thread} {row.reference.kind}",
            str(row.reference.bytes),
            f"{row.count:,}",
        ]
        for row in shown
    ]
    widths = [max((len(line[k]) for line in cells), default=0) for k in range(5)]
    lines = []
    for row, line in zip(shown, cells, strict=True):
        left = [
            text.ljust(width) if k < 3 else text.rjust(width)
            for k, (text, width) in enumerate(zip(line, widths, strict=True))
        ]
        lines.append("  ".join([*left, stream_text(row.stream, None if verbose else NEST)]))
        if verbose and row.low is not None and row.high is not None:
            lines.append(f"{' ' * widths[0]}  {row.low:#x} .. {row.high:#x}, {' and '.join(row.objects)}")
        if verbose and row.inlined:
            chain = ", ".join(f"{c.function} inlined at {os.path.basename(c.file)}:{c.line}" for c in row.inlined)
            lines.append(f"{' ' * widths[0]}  {chain}")
    if len(shown) < len(found):
        rest = found[len(shown) :]
        lines.append(f"{len(rest)} more with {sum(row.count for row in rest):,} accesses (-n 0 prints all)")
    return lines


def hulls(found: Sequence[Row]) -> list[str]:
    """The objects that are touched, with the bounds of what is touched, most accesses first."""
    merged: dict[tuple[str, ...], tuple[int, int, int]] = {}
    for row in found:
        if row.low is None or row.high is None:
            continue
        low, high, count = merged.get(row.objects, (row.low, row.high, 0))
        merged[row.objects] = min(low, row.low), max(high, row.high), count + row.count
    ordered = sorted(merged.items(), key=lambda item: -item[1][2])
    return [f"{count:>14,}  {low:#x} .. {high:#x}  {' and '.join(names)}" for names, (low, high, count) in ordered]


def as_json(trace: Trace, found: Sequence[Row], sum_of_file: str) -> dict[str, Any]:
    """The trace for scripts: addresses are integers, nests plain trees."""
    return {
        "schema": "layout-advise.show/1",
        "symbol": trace.symbol,
        "call": trace.call,
        "calls": trace.calls,
        "backend": trace.backend,
        "accesses": trace.accesses,
        "truncated": trace.truncated,
        "others": trace.others,
        "limits": list(trace.limits),
        "checksum": sum_of_file,
        "references": [
            {
                **asdict(row.reference),
                "count": row.count,
                "function": row.function,
                "file": row.source.file if row.source else None,
                "line": row.source.line if row.source else None,
                "low": row.low,
                "high": row.high,
                "objects": list(row.objects),
                "stream": stream_text(row.stream),
                "inlined": [asdict(call) for call in row.inlined],
                "loop": row.loop,
            }
            for row in found
        ],
        "structures": [asdict(found) for found in trace.objects],
        "loops": [asdict(loop) for loop in trace.loops],
        "order": control_text(trace),
        "orders": [{"thread": number, "order": text} for number, text in team_control_texts(trace)],
        "heap": {"born": [asdict(block) for block in trace.born], "freed": list(trace.freed)} if trace.watched else None,
    }


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``show``."""
    parser.add_argument("run", metavar="RUN", help="a run directory, the folder of a region in it, or a trace.lat")
    parser.add_argument(
        "-n", "--limit", type=int, default=LIMIT, metavar="N", help="references to print (default: 20; 0: all)"
    )
    parser.add_argument("-v", "--verbose", action="store_true", help="nests in full; bounds and objects of every reference")
    parser.add_argument(
        "--csv", metavar="FILE", help="write the references as CSV to FILE ('-': stdout, nothing else there)"
    )
    parser.add_argument("--parquet", metavar="FILE", help="write the references as Parquet to FILE (needs pyarrow)")
    parser.add_argument(
        "--chrome", metavar="FILE", help="write Chrome trace events (for ui.perfetto.dev) to FILE ('-': stdout)"
    )
    parser.add_argument("--json", metavar="FILE", help="write the trace as JSON to FILE ('-': stdout, nothing else there)")


def run(arguments: argparse.Namespace) -> int:
    """Carry out ``show``."""
    file = find_trace(common.existing(arguments.run))
    there = read_what_is_there(file)
    trace = there.trace if there.missing is None else replace(there.trace, limits=(*there.trace.limits, there.missing))
    places = NamedPlaces(trace, file.stat().st_mtime)
    found = rows(trace, places)
    for path in sorted(places.changed):
        print(f"{path} has changed since it was traced: no source lines from it", file=sys.stderr)
    if there.missing is not None:
        print(f"{file} is incomplete: {there.missing}", file=sys.stderr)
    if arguments.parquet:
        write_parquet(found, Path(arguments.parquet))
    if written_to_stdout(arguments, trace, found, file):
        return 0
    print(heading(trace))
    for limit in trace.limits:
        print(f"not whole: {limit}")
    if trace.others:
        print(f"not whole: {OTHERS}")
    print("\n".join(table(found, max(0, arguments.limit), arguments.verbose)))
    print("\n".join([*below(trace, found, arguments.verbose), *sharing_lines(trace, places, found)]))
    return 0


def written_to_stdout(arguments: argparse.Namespace, trace: Trace, found: Sequence[Row], file: Path) -> bool:
    """Write the files that are asked for; whether one of them is stdout, where nothing else may go then."""
    makers: tuple[tuple[str | None, Callable[[], str]], ...] = (
        (arguments.json, lambda: json.dumps(as_json(trace, found, checksum(file)), indent=1) + "\n"),
        (arguments.csv, lambda: as_csv(found)),
        (arguments.chrome, lambda: json.dumps(events(trace, read_stages(run_of(file)))) + "\n"),
    )
    for target, make in makers:
        if target is not None and target != "-":
            write_atomically(Path(target), make().encode())
    for target, make in makers:
        if target == "-":
            sys.stdout.write(make())
            return True
    return False


def below(trace: Trace, found: Sequence[Row], verbose: bool) -> list[str]:
    """The lines under the references: structures, loops and order of execution, as far as the trace knows them."""
    lines = ["", "structures", *object_lines(trace, verbose)] if trace.objects else []
    if lines and (heap := heap_line(trace)):
        lines.append(f"  {heap}")
    if loops := loop_lines(trace):
        lines += ["", "loops", *loops]
    order = control_text(trace, None if verbose else ORDER)
    if order is not None:
        lines += ["", f"order of execution: {order}"]
    if team := team_control_lines(trace, None if verbose else ORDER):
        lines += ["", "order of execution by thread", *team]
    unknown = unknown_text(trace)
    return [*(lines or ["", "accesses, bounds and objects", *hulls(found)]), *(["", unknown] if unknown else [])]
