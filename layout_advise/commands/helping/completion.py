"""Completion of commands, options and file names in a shell, by shtab."""

from __future__ import annotations

import argparse

import shtab

SHELLS = ("bash", "zsh", "tcsh")
FILES = ("FILE", "RUN", "DIR", "BINARY", "PATCH", "LIST", "A", "B")
"""Placeholders of options and arguments that are paths."""


def script(parser: argparse.ArgumentParser, shell: str) -> str:
    """A script for the shell that completes commands of ``parser``."""
    subparsers = next(action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    for sub in subparsers.choices.values():
        for action in sub._actions:
            if action.metavar in FILES or action.nargs == argparse.REMAINDER:
                action.complete = shtab.FILE
    return str(shtab.complete(parser, shell))
