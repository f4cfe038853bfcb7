"""The command line: one file a subcommand, errors caught once."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from types import ModuleType

from rich_argparse import RawDescriptionRichHelpFormatter

from layout_advise import __version__
from layout_advise.commands import compare, demo, doctor, layout, report, show, trace
from layout_advise.errors import LayoutAdviseError

COMMANDS: tuple[ModuleType, ...] = (trace, report, show, compare, layout, doctor, demo)

DESCRIPTION = """\
Should this be a structure of arrays? layout-advise answers with measurements: it finds the hotspot of a compiled
program, recognises its data structures, rewrites their layout, runs the hotspot on the new layouts with the program's own
data, checks byte for byte that it computes the same, and times it.

  layout-advise trace -- ./app its args     advise
  layout-advise report app.layout           print the report again
  layout-advise doctor                      what this machine can do

exit codes: 0 done, 1 could not, 2 usage, 3 --fail-on reached, 4 this machine lacks something (see doctor)
"""


def parser() -> argparse.ArgumentParser:
    """The whole command line."""
    top = argparse.ArgumentParser(
        prog="layout-advise", description=DESCRIPTION, formatter_class=RawDescriptionRichHelpFormatter
    )
    top.add_argument("-V", "--version", action="version", version=f"layout-advise {__version__}")
    commands = top.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for module in COMMANDS:
        text = (module.__doc__ or "").strip()
        sub = commands.add_parser(
            module.__name__.rsplit(".", 1)[1],
            help=text.splitlines()[0].rstrip("."),
            description=text,
            formatter_class=RawDescriptionRichHelpFormatter,
        )
        module.add_arguments(sub)
        sub.set_defaults(run=module.run)
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code (design, section 6)."""
    arguments = parser().parse_args(argv)
    previous = signal.signal(signal.SIGTERM, _terminate)
    try:
        return int(arguments.run(arguments))
    except LayoutAdviseError as error:
        print(f"layout-advise: {error.line()}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print(
            "layout-advise: interrupted: everything it started is stopped; run again with -f to start over", file=sys.stderr
        )
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except OSError as error:
        print(f"layout-advise: {error.filename or 'system call'}: {error.strerror or error}", file=sys.stderr)
        return 1
    finally:
        signal.signal(signal.SIGTERM, previous)


def _terminate(_number: int, _frame: object) -> None:
    """SIGTERM ends a run as Ctrl-C does: everything is cleaned up."""
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
