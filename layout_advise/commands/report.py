"""Print the report of a run, or write its HTML again.

  layout-advise report app.layout
  layout-advise report app.layout --html advice.html
  layout-advise report app.layout --json -          for scripts

Everything comes from report.json; nothing is measured again.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from layout_advise.commands import common
from layout_advise.reports.model.contract import read_report
from layout_advise.reports.model.redact import without_source
from layout_advise.reports.pages import html
from layout_advise.rundir import write_atomically


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``report``."""
    parser.add_argument("run", metavar="RUN", help="a run directory, or a report.json")
    parser.add_argument("--html", metavar="FILE", help="write the HTML report to FILE")
    common.add_output(parser)


def run(arguments: argparse.Namespace) -> int:
    """Carry out ``report``."""
    report = read_report(common.existing(arguments.run))
    report = without_source(report) if arguments.no_source else report
    if arguments.html:
        write_atomically(Path(arguments.html), html.render(report).encode())
        print(f"report: {arguments.html}", file=sys.stderr)
    common.show(report, arguments)
    return 0
