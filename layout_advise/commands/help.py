"""Explain a command or a topic; print the man page or the completion for a shell.

  layout-advise help                                 commands and topics
  layout-advise help trace
  layout-advise help reasons
  layout-advise help --man > layout-advise.1
  layout-advise help --completion bash > ~/.layout-advise-completion

The last is for `source` in ~/.bashrc; zsh and tcsh have theirs.
"""

from __future__ import annotations

import argparse
import sys

from layout_advise import __version__
from layout_advise.commands.helping import topics
from layout_advise.commands.helping.catalogue import commands_of
from layout_advise.commands.helping.completion import SHELLS, script
from layout_advise.commands.helping.manual import man_page
from layout_advise.errors import UsageError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``help``."""
    parser.add_argument("topic", metavar="TOPIC", nargs="?", help="a command, or a word of the list that is printed without")
    parser.add_argument("--man", action="store_true", help="print the man page of all commands")
    parser.add_argument("--completion", choices=SHELLS, metavar="SHELL", help="print the completion for bash, zsh or tcsh")


def run(arguments: argparse.Namespace) -> int:
    """Carry out ``help``."""
    whole: argparse.ArgumentParser = arguments.whole
    commands = {command.name: command for command in commands_of(whole)}
    if arguments.completion:
        text = script(whole, arguments.completion)
    elif arguments.man:
        text = man_page(__version__, whole.description or "", commands.values())
    elif arguments.topic is None:
        text = topics.overview((command.name, command.brief) for command in commands.values())
    elif arguments.topic in commands:
        whole.parse_args([arguments.topic, "--help"])  # prints it and ends
        return 0
    elif arguments.topic in topics.TOPICS:
        text = topics.TOPICS[arguments.topic]()
    else:
        raise UsageError(f"no topic {arguments.topic}", "", f"there are: {', '.join([*commands, *topics.TOPICS])}")
    sys.stdout.write(text)
    return 0
