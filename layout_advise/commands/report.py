"""Print the report of a run, or write it in another form.

  layout-advise report app.layout
  layout-advise report app.layout --format md             Markdown, for an issue or a job's summary
  layout-advise report app.layout --format sarif -o app.sarif
  layout-advise report app.layout --format notes          file:line: note: ..., for editors
  layout-advise report app.layout --format github         annotations, in a workflow of GitHub
  layout-advise report app.layout --fail-on 1.2           exit with 3 when a change of 1.2 times and more is advised
  layout-advise report app.layout --figure speedups.pdf   for a paper (svg, png, pdf; the same bytes each time)

Everything comes from report.json; nothing is measured again.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path

from layout_advise.commands import common
from layout_advise.commands.folded.show_files import write_table
from layout_advise.errors import RunDirError, UsageError
from layout_advise.reports.exports import notes, rows
from layout_advise.reports.exports.markdown import markdown
from layout_advise.reports.exports.sarif import sarif
from layout_advise.reports.model.contract import Report, encode, read_report
from layout_advise.reports.model.redact import LEFT_OUT, without_source
from layout_advise.reports.pages import figures, html
from layout_advise.reports.words.first_screen import RUN
from layout_advise.reports.words.visible import visible
from layout_advise.rundir import write_atomically

FIGURES: tuple[figures.Kind, ...] = ("svg", "png", "pdf")
FORMATS: dict[str, Callable[[Report], str]] = {
    "json": lambda report: encode(report).decode(),
    "md": markdown,
    "sarif": lambda report: json.dumps(sarif(report, str(Path.cwd())), indent=2, ensure_ascii=False) + "\n",
    "csv": rows.as_csv,
    "notes": lambda report: "".join(f"{line}\n" for line in notes.notes(report, str(Path.cwd()))),
    "github": lambda report: "".join(f"{line}\n" for line in notes.github_lines(report, str(Path.cwd()))),
}
"""The forms of a report that are text, besides the terminal's."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``report``."""
    parser.add_argument("run", metavar="RUN", help="a run directory, or a report.json")
    parser.add_argument("--html", metavar="FILE", help="write the HTML report to FILE")
    parser.add_argument(
        "--format",
        choices=("text", "html", *FORMATS, "parquet"),
        default="text",
        help="the form of the report (default: text)",
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="write it to FILE instead of stdout")
    parser.add_argument("--figure", metavar="FILE", help="write the measured speedups as a figure (.svg, .png, .pdf)")
    common.add_fail_on(parser)
    common.add_output(parser)
    common.add_all(parser)


def run(arguments: argparse.Namespace) -> int:
    """Carry out ``report``."""
    report = read_report(common.existing(arguments.run))
    report = without_source(report) if arguments.no_source else report
    named = None if LEFT_OUT in report.command or arguments.no_source else str(Path(arguments.run).absolute())
    if arguments.html:
        write_atomically(Path(arguments.html), html.render(report, named).encode())
        print(f"report: {arguments.html}", file=sys.stderr)
    if arguments.figure:
        _write_figure(report, Path(arguments.figure))
    if arguments.format == "parquet":
        if not arguments.output:
            raise UsageError("Parquet cannot be printed", "", "give a file: -o FILE")
        write_table(rows.records(report), rows.COLUMNS, Path(arguments.output))
    elif arguments.format == "html":
        _put(html.render(report, named), arguments.output)
    elif arguments.format != "text":
        _put(FORMATS[arguments.format](report), arguments.output)
    elif arguments.output:
        _put(common.text(report, arguments, Path(RUN if arguments.no_source else arguments.run)), arguments.output)
    else:
        common.show(report, arguments, Path(arguments.run))
    return common.FAIL_ON_REACHED if common.advised(report, arguments.fail_on) else 0


def _put(text: str, file: str | None) -> None:
    if file is None or file == "-":
        sys.stdout.write(text)
        return
    write_atomically(Path(file), visible(text).encode())


def _write_figure(report: Report, path: Path) -> None:
    """The speedups of the first region that has some."""
    kind = next((one for one in FIGURES if path.suffix == f".{one}"), None)
    if kind is None:
        raise UsageError(f"cannot tell the kind of figure {path.name} is to be", "", "end its name in .svg, .png or .pdf")
    data = next((made for hotspot in report.hotspots if (made := figures.speedup_file(hotspot, kind))), b"")
    if not data:
        raise RunDirError("there is no figure to draw", "no layout of this run has a measured speedup")
    write_atomically(path, data)
