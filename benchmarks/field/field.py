"""The field: programs that others wrote, through ``layout-advise farm``, and what came of it in ``benchmarks/FIELD.md``.

``make field`` runs the two thirds of the list that are not held back, ``make field ONLY=bzip2`` one program, ``make field
HELD_BACK=1`` the others. Sources and builds are kept in ``$XDG_CACHE_HOME/layout-advise/field`` (by default in
``~/.cache``), which all checkouts share; results in ``benchmarks/field/.results``. The page is written from the summaries
there, with ``--page`` without running anything.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import samples
from held_back import SEED, held_back, names

from layout_advise.reports.model.farm import FarmReport, FarmRow, decode_farm
from layout_advise.reports.pages import farm_pages

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent / "FIELD.md"
RESULTS = HERE / ".results"


def cache() -> Path:
    """The folder of sources and builds."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "layout-advise" / "field"


def farm(only: Sequence[str], rest: Sequence[str]) -> int:
    """Runs the farm on some programs; returns its exit code. Its list's ``python3`` is the one that runs this. The farm ends
    when this is told to: it would go on measuring beside the next one."""
    words = ["farm", str(HERE / "field.toml"), "-o", str(RESULTS), "--work", str(cache()), "--only", ",".join(only)]
    path = os.pathsep.join((str(Path(sys.executable).absolute().parent), os.environ.get("PATH", os.defpath)))
    command = [str(Path(sys.executable).absolute()), "-m", "layout_advise", *words, *rest]
    process = subprocess.Popen(command, env=os.environ | {"PATH": path})
    before = signal.signal(signal.SIGTERM, lambda *_: process.terminate())
    try:
        return process.wait()
    finally:
        signal.signal(signal.SIGTERM, before)


def summary(only: Sequence[str], rest: Sequence[str]) -> FarmReport:
    """What is known of some programs."""
    file = RESULTS / "part.json"
    code = farm(only, ["--summary", "-q", "--json", str(file), *rest])
    if code:
        sys.exit(code)
    return decode_farm(file.read_bytes())


def cell(text: str) -> str:
    """Text that a table of Markdown can hold."""
    return text.replace("|", "\\|").replace("\n", " ")


def table(rows: Sequence[FarmRow]) -> list[str]:
    """A line for each run."""
    lines = ["| program | version | language | flags | region | samples | verdict | reason | gain | seconds |"]
    lines.append("|---|---|---|---|---|---|---|---|---|---|")
    for row in rows:
        cells = (
            row.program,
            row.version,
            row.language,
            row.flags,
            f"`{row.symbol}`" if row.symbol else "–",
            farm_pages.share(row),
            farm_pages.verdict(row),
            farm_pages.reason(row),
            farm_pages.gain(row),
            f"{row.seconds:.0f}",
        )
        lines.append(f"| {' | '.join(cell(text) for text in cells)} |")
    return lines


def blockers(report: FarmReport) -> list[str]:
    """The reasons without a measured answer, by number of programs, with what each program met."""
    lines = ["| programs | reason | programs, and what stopped them |", "|---|---|---|"]
    for one in report.blockers:
        lines.append(f"| {len(one.programs)} | {one.reason} | {'<br>'.join(cell(text) for text in one.examples)} |")
    return lines


def part(title: str, report: FarmReport) -> list[str]:
    """One part of the page."""
    if not report.rows:
        return ["", f"## {title}", "", "Not run yet."]
    machines = sorted({f"{row.machine} ({row.cpu})" for row in report.rows})
    runs = samples.reports({row.program for row in report.rows})
    days = sorted({row.created[:10] for row in report.rows if row.created})
    return [
        "",
        f"## {title}",
        "",
        f"{farm_pages.total_line(report.totals)} {', '.join(machines)}; {' to '.join(dict.fromkeys((days[0], days[-1])))}.",
        "",
        *table(report.rows),
        "",
        "### Without a measured answer",
        "",
        *blockers(report),
        "",
        "### Where the samples are",
        "",
        *samples.table(runs),
        "",
        *samples.summed_up(runs),
    ]


def page(everything: Sequence[str], drawn: Sequence[str], rest: Sequence[str]) -> str:
    """FIELD.md."""
    others = [name for name in everything if name not in drawn]
    lines = [
        "# The field: programs that others wrote",
        "",
        f"Written by `make field` (`benchmarks/field/field.py`). {len(everything)} programs are in the list.",
        f"Of each three in a row one is drawn with seed {SEED} and held back: {', '.join(drawn)}.",
        "`samples` is the part of the program's samples in the region studied, `gain` what the verdict claims with every",
        "doubt: of the layout advised or, where none is, of the one that comes nearest to a gain; `seconds` are those of",
        "the whole run of `trace`.",
        *part("Programs to develop with", summary(others, rest)),
        *part("Held back", summary(drawn, rest)),
    ]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Runs what is asked for; writes the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="these programs, with commas between")
    parser.add_argument("--held-back", action="store_true", help="the third that is held back")
    parser.add_argument("--page", action="store_true", help="run nothing, write the page")
    parser.add_argument("--options", default="", help="of `trace`, in quotes")
    given, rest = parser.parse_known_args()
    everything = names()
    drawn = held_back(everything)
    options = ["--options", given.options] if given.options else []
    if not given.page:
        chosen = given.only.split(",") if given.only else [n for n in everything if (n in drawn) == given.held_back]
        if code := farm(chosen, [*options, *rest]):
            return code
    if not given.only and not rest:
        PAGE.write_text(page(everything, drawn, options))
        print(f"page: {PAGE}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
