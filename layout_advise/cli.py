"""The command line: one file a subcommand, errors caught once."""

from __future__ import annotations

import argparse
import errno
import os
import signal
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from types import FrameType, ModuleType

from rich_argparse import RawDescriptionRichHelpFormatter

from layout_advise import __version__
from layout_advise.errors import LayoutAdviseError
from layout_advise.progress import Interrupted
from layout_advise.reports.pages.console import guarded, styled
from layout_advise.reports.words.visible import visible

COMMANDS: dict[str, str] = {
    "trace": "layout_advise.commands.trace",
    "report": "layout_advise.commands.report",
    "show": "layout_advise.commands.show",
    "apply": "layout_advise.commands.apply",
    "views": "layout_advise.commands.views",
    "emit": "layout_advise.commands.emit",
    "compare": "layout_advise.commands.compare",
    "guard": "layout_advise.commands.guard",
    "farm": "layout_advise.commands.farm",
    "opencl": "layout_advise.commands.kernels.opencl",
    "calibrate": "layout_advise.commands.kernels.calibrate",
    "layout": "layout_advise.commands.layout",
    "doctor": "layout_advise.commands.doctor",
    "demo": "layout_advise.commands.demo",
    "help": "layout_advise.commands.help",
}
"""The commands' modules. Only that of the command that is given is brought in: to bring in all of them takes longer than
most commands then do."""

PATIENCE = 5.0
"""Seconds for which further signals are ignored."""

DESCRIPTION = """\
Should this be a structure of arrays? layout-advise answers with measurements: it finds the hotspot of a compiled
program, recognises its data structures, rewrites their layout, runs the hotspot on the new layouts with the program's own
data, checks byte for byte that it computes the same, and times it.

  layout-advise trace -- ./app its args     advise
  layout-advise report app.layout           print the report again
  layout-advise doctor                      what this machine can do

  layout-advise help                        commands and topics: exit codes, variables, reasons, words

exit codes: 0 done, 1 could not, 2 usage, 3 an alarm (--fail-on, guard --check), 4 this machine lacks something
  (doctor says what), or compare found nothing in common
"""


class CommandParser(argparse.ArgumentParser):
    """Keeps the words behind ``--`` apart where a command has a default for ``flags``: argparse takes no positional words
    behind options that follow another positional word."""

    def parse_known_args(self, args=None, namespace=None):  # type: ignore[no-untyped-def]
        """As ArgumentParser's."""
        if self.get_default("flags") is None or args is None or "--" not in args:
            return super().parse_known_args(args, namespace)
        cut = args.index("--")
        found, rest = super().parse_known_args(args[:cut], namespace)
        found.flags = tuple(args[cut + 1 :])
        return found, rest

    def error(self, message):  # type: ignore[no-untyped-def]
        """As ArgumentParser's; the message has words of the command line."""
        super().error(visible(message))

    def _print_message(self, message, file=None):  # type: ignore[no-untyped-def]
        # helps are coloured by rich
        super()._print_message(message, styled(file) if file is not None else None)


def module_of(name: str) -> ModuleType:
    """The module of the command ``name``."""
    return import_module(COMMANDS[name])


def parser(names: Iterable[str] = tuple(COMMANDS)) -> argparse.ArgumentParser:
    """The command line with these commands; with all of them it is the whole one."""
    top = CommandParser(prog="layout-advise", description=DESCRIPTION, formatter_class=RawDescriptionRichHelpFormatter)
    top.add_argument("-V", "--version", action="version", version=f"layout-advise {__version__}")
    # with `prog` no help is rendered here: rich would write to stdout, which may be full or closed
    commands = top.add_subparsers(dest="command", metavar="COMMAND", required=True, prog=top.prog)
    for name in names:
        module = module_of(name)
        text = (module.__doc__ or "").strip()
        sub = commands.add_parser(
            name,
            help=text.splitlines()[0].rstrip("."),
            description=text,
            formatter_class=RawDescriptionRichHelpFormatter,
        )
        module.add_arguments(sub)
        sub.set_defaults(carry_out=module.run, whole=top)  # not `run`: that is the run directory of some commands
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code (design, section 6). What is printed meanwhile cannot steer a terminal."""
    words = sys.argv[1:] if argv is None else argv
    for name in _named(words):
        module_of(name)  # before signals become exceptions: one that comes in the middle of an import may be lost
    streams = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = guarded(sys.stdout), guarded(sys.stderr)
    try:
        return _carried_out(words)
    finally:
        sys.stdout, sys.stderr = streams


def _named(words: Sequence[str]) -> Sequence[str]:
    """The commands that these words are about: the first of them, or all where it is none, or ``help``."""
    if words and words[0] in ("-V", "--version"):
        return ()
    return words[:1] if words and words[0] in COMMANDS and words[0] != "help" else tuple(COMMANDS)


def _carried_out(words: Sequence[str]) -> int:
    """The exit code of one command, its errors told."""
    previous = _stop_on_signals()
    try:
        arguments = _parse(words)
        code = int(arguments.carry_out(arguments))
        sys.stdout.flush()  # here, so that a full disk or a closed pipe is reported like any other error
        return code
    except LayoutAdviseError as error:
        print(f"layout-advise: {error.line()}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt as stop:
        previous = dict.fromkeys(previous, signal.SIG_IGN)
        return _interrupted(stop)
    except BrokenPipeError:
        _drop_output()
        return 141
    except MemoryError:
        print(
            "layout-advise: out of memory: `layout-advise doctor` says how much there is; lower --max-refs", file=sys.stderr
        )
        return 1
    except OSError as error:
        full = error.errno == errno.ENOSPC
        what = error.filename or ("cannot write the results" if full else "system call")
        hint = "; free some space or choose another -o" if full else ""
        print(f"layout-advise: {what}: {error.strerror or error}{hint}", file=sys.stderr)
        if full:
            _drop_output()
        return 1
    except Exception as error:
        cause = _cause(error)
        if cause is None:
            raise
        previous = dict.fromkeys(previous, signal.SIG_IGN)
        return _interrupted(cause)
    finally:
        Interrupted.number = None
        for number, handler in previous.items():
            signal.signal(number, handler)


def _interrupted(stop: KeyboardInterrupt) -> int:
    """Tells of it; the exit code. Signals are ignored from now on, until the process is gone: the interpreter takes a while
    to end, and a second press must not change the exit code."""
    print("layout-advise: interrupted: everything it started is stopped; run it again to start over", file=sys.stderr)
    return 128 + (stop.args[0] if stop.args else signal.SIGINT)


def _cause(error: BaseException) -> KeyboardInterrupt | None:
    """The interruption that an error was made of: Python before 3.12 wraps whatever comes while a class gets its members."""
    found = error.__cause__
    return found if found is None or isinstance(found, KeyboardInterrupt) else _cause(found)


def _parse(words: Sequence[str]) -> argparse.Namespace:
    try:
        return parser(_named(words)).parse_args(words)
    except SystemExit:
        sys.stdout.flush()  # the help may go into a closed pipe, too
        raise


def _stop_on_signals() -> dict[int, signal.Handlers | Callable[[int, FrameType | None], object] | int | None]:
    """SIGTERM and a closed terminal end a run as Ctrl-C does: everything is cleaned up. Returns the handlers before.

    A second signal within a few seconds is ignored: people press twice, and it would cut the clean-up short.
    """
    last = -PATIENCE

    def stop(number: int, _frame: object) -> None:
        nonlocal last
        if time.monotonic() - last >= PATIENCE:
            last = time.monotonic()
            Interrupted.number = number
            raise KeyboardInterrupt(number)

    wanted = [n for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP) if signal.getsignal(n) != signal.SIG_IGN]  # nohup
    return {number: signal.signal(number, stop) for number in wanted}


def _drop_output() -> None:
    """Drops what is still buffered for stdout, so that the interpreter does not fail on it at exit."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


if __name__ == "__main__":
    sys.exit(main())
