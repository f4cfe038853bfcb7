"""``doctor --lift``: which functions of a binary the lifter takes, and what stops the others."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.markup import escape
from rich.table import Table

from layout_advise.commands import common
from layout_advise.commands.lifting.lift_survey import SECONDS, survey
from layout_advise.errors import UsageError
from layout_advise.mockup.run.survey import SurveyOutcome, surveyed
from layout_advise.progress import Progress
from layout_advise.reports.pages.console import PlainConsole, styled
from layout_advise.rundir import scratch
from layout_advise.tracer.program.binary import ElfBinary

_MOST_REASONS = 20
_ROW = 250
"""Functions after which a line says how far it is."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """``--lift`` and what belongs to it."""
    parser.add_argument(
        "--lift", metavar="BINARY", help="instead: try every function of a program or library, say what cannot be lifted"
    )
    parser.add_argument("--time-limit", metavar="SECONDS", type=float, default=SECONDS, help="per function (default: 20)")
    parser.add_argument("-q", "--quiet", action="store_true", help="with --lift: no progress")
    parser.add_argument("-v", "--verbose", action="store_true", help="with --lift: a line for every function")


def run(arguments: argparse.Namespace) -> int:
    """Carry out ``doctor --lift BINARY``."""
    if arguments.time_limit <= 0:
        raise UsageError("--time-limit must be above 0", f"it is {arguments.time_limit:g}")
    path = Path(arguments.lift)
    binary = ElfBinary.open_module(path)
    functions = surveyed(binary)
    colour = common.wants_colour("auto")
    console = PlainConsole(file=styled(sys.stdout), highlight=False, no_color=not colour, width=common.width())
    known: list[SurveyOutcome] = []

    def told(outcome: SurveyOutcome) -> None:
        known.append(outcome)
        if arguments.verbose and not arguments.json:
            text = "lifted" if outcome.stop is None else f"not lifted: {_place(binary, outcome)}: {outcome.stop.reason}"
            console.print(f"{outcome.name}: {text}", soft_wrap=True, markup=False)
        elif len(known) % _ROW == 0:
            progress.note(f"{len(known):,} of {len(functions):,} functions: {_share(known)} lifted")

    with Progress(arguments.quiet) as progress, scratch() as folder:
        progress.stage("lift", f"lifting the functions of {path.name}")
        outcomes = survey(
            path,
            functions,
            folder=folder,
            seconds=arguments.time_limit,
            progress=lambda done, total: progress.count(f"lifting the functions of {path.name}:", done, total),
            told=told,
        )
    if arguments.json:
        json.dump(_as_json(binary, outcomes), sys.stdout, indent=1)
        print()
    else:
        _show(console, binary, outcomes)
    return 0


def _line(binary: ElfBinary, address: int) -> str | None:
    found = binary.line(address) if binary.debug.present else None
    return None if found is None else found.short()


def _as_json(binary: ElfBinary, outcomes: Sequence[SurveyOutcome]) -> dict[str, Any]:
    return {
        "schema": "layout-advise.lift-survey/1",
        "binary": {"path": str(binary.path), "build_id": binary.build_id},
        "functions": len(outcomes),
        "lifted": sum(o.lifted for o in outcomes),
        "float_loops": sum(o.float_loop for o in outcomes),
        "float_loops_lifted": sum(o.lifted for o in outcomes if o.float_loop),
        "outcomes": [_one(binary, outcome) for outcome in outcomes],
    }


def _one(binary: ElfBinary, outcome: SurveyOutcome) -> dict[str, Any]:
    stop = outcome.stop
    return {
        "function": outcome.name,
        "address": hex(outcome.start),
        "bytes": outcome.size,
        "float_loop": outcome.float_loop,
        "lifted": outcome.lifted,
        "stop": None
        if stop is None
        else {
            "address": hex(stop.address),
            "instruction": stop.instruction,
            "reason": stop.reason,
            "line": _line(binary, stop.address),
        },
    }


def _show(console: PlainConsole, binary: ElfBinary, outcomes: Sequence[SurveyOutcome]) -> None:
    loops = [o for o in outcomes if o.float_loop]
    console.print(f"{binary.path}: {_share(outcomes)} functions can be lifted;", soft_wrap=True, markup=False)
    console.print(f"with a floating-point loop: {_share(loops)}", soft_wrap=True, markup=False)
    stopped: dict[str, list[SurveyOutcome]] = {}
    for outcome in outcomes:
        if outcome.stop is not None:
            stopped.setdefault(outcome.stop.kind, []).append(outcome)
    if not stopped:
        return
    table = Table("functions", "with float loop", "what stops them", "for example", box=None, pad_edge=False)
    for kind, group in sorted(stopped.items(), key=lambda item: -len(item[1]))[:_MOST_REASONS]:
        shown = next((o for o in group if o.float_loop), group[0])
        example = f"{shown.name}: {_place(binary, shown)}"
        table.add_row(str(len(group)), str(sum(o.float_loop for o in group)), escape(kind), escape(example))
    console.print(table)


def _share(outcomes: Sequence[SurveyOutcome]) -> str:
    lifted = sum(o.lifted for o in outcomes)
    return f"{lifted} of {len(outcomes)}" + (f" ({100 * lifted / len(outcomes):.1f} %)" if outcomes else "")


def _place(binary: ElfBinary, outcome: SurveyOutcome) -> str:
    assert outcome.stop is not None
    line = _line(binary, outcome.stop.address)
    return f"{outcome.stop.instruction} at {outcome.stop.address:#x}" + (f" ({line})" if line else "")
