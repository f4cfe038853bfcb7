"""Compare two runs: what became faster, what became of the structures, and how the measured gains moved.

  layout-advise compare before.layout after.layout
  layout-advise compare before.layout after.layout --markdown -     a table for a pull request
  layout-advise compare before.layout after.layout --json out.json  for scripts

Regions are matched by their names in the source, structures by name and place of allocation, layouts by what they do.
The mark before a line: + faster or more gain, - less, ~ not different: the interval of the ratio of two times reaches to
within 5 % of 1, the intervals of two gains overlap.

exit codes: 0 nothing became slower, 3 something did (or --fail-on was reached), 4 the runs have no region in common. With
--fail-on SPEEDUP the code is also 3 when B advises a change of at least that speedup that A does not.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from layout_advise.commands import common
from layout_advise.compare.match import source_name
from layout_advise.compare.pages import as_data, as_markdown, as_tables
from layout_advise.compare.runs import compared
from layout_advise.errors import UsageError
from layout_advise.reports.model.contract import Report, read_report
from layout_advise.reports.pages.console import PlainConsole, styled
from layout_advise.rundir import write_atomically

NOTHING_IN_COMMON = 4
"""The exit code for runs that cannot be compared."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``compare``."""
    parser.add_argument("before", metavar="A", help="a run directory, or a report.json")
    parser.add_argument("after", metavar="B", help="another one")
    parser.add_argument(
        "--json", metavar="FILE", help="write the comparison as JSON to FILE ('-': stdout, nothing else there)"
    )
    parser.add_argument("--markdown", metavar="FILE", help="write it as Markdown to FILE ('-': stdout, nothing else there)")
    common.add_fail_on(parser)


def run(arguments: argparse.Namespace) -> int:
    """Carry out ``compare``."""
    if arguments.json == "-" and arguments.markdown == "-":
        raise UsageError("standard output has room for one of --json and --markdown", "", "give one of them a file")
    a = read_report(common.existing(arguments.before))
    b = read_report(common.existing(arguments.after))
    found = compared(a, b)
    texts = ((arguments.json, json.dumps(as_data(found), indent=1) + "\n"), (arguments.markdown, as_markdown(found)))
    for target, text in texts:
        if target is not None and target != "-":
            write_atomically(Path(target), text.encode())
    to_stdout = next((text for target, text in texts if target == "-"), None)
    if to_stdout is not None:
        sys.stdout.write(to_stdout)
    else:
        colour = common.wants_colour("auto")
        console = PlainConsole(file=styled(sys.stdout), width=common.width(), highlight=False, no_color=not colour)
        for part in as_tables(found):
            console.print(part, markup=not isinstance(part, str))
    if not found.regions:
        return NOTHING_IN_COMMON
    return common.FAIL_ON_REACHED if found.worse or _newly_advised(a, b, arguments.fail_on) else 0


def _newly_advised(a: Report, b: Report, least: float | None) -> bool:
    before = {source_name(hotspot) for hotspot in common.advised(a, least)}
    return any(source_name(hotspot) not in before for hotspot in common.advised(b, least))
