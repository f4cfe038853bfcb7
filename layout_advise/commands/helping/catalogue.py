"""The commands and options that the parser knows, as data."""

from __future__ import annotations

import argparse
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class OptionEntry:
    """An option or argument: how it is written (``-o DIR, --output DIR``) and what its help says."""

    spelling: str
    text: str


@dataclass(frozen=True, slots=True)
class CommandEntry:
    """A subcommand: its name, one line about it, its usage, its whole description with examples, its options."""

    name: str
    brief: str
    usage: str
    description: str
    options: tuple[OptionEntry, ...]


def commands_of(parser: argparse.ArgumentParser) -> tuple[CommandEntry, ...]:
    """The subcommands of ``parser``, in its order."""
    subparsers = next(action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    briefs = {choice.dest: choice.help or "" for choice in subparsers._choices_actions}
    return tuple(_command(name, briefs.get(name, ""), sub) for name, sub in subparsers.choices.items())


def _command(name: str, brief: str, parser: argparse.ArgumentParser) -> CommandEntry:
    plain = argparse.ArgumentParser(prog=parser.prog, add_help=False, formatter_class=argparse.RawDescriptionHelpFormatter)
    plain._actions = parser._actions  # the same, without rich's colours
    plain._mutually_exclusive_groups = parser._mutually_exclusive_groups
    usage = " ".join(plain.format_usage().removeprefix("usage: ").split())
    shown = [action for action in parser._actions if action.help != argparse.SUPPRESS]
    options = tuple(OptionEntry(_spelling(action), _text(action, parser.prog)) for action in shown)
    return CommandEntry(name, brief, usage, (parser.description or "").strip(), options)


def _spelling(action: argparse.Action) -> str:
    if not action.option_strings:
        return str(action.metavar or action.dest)
    value = _value(action)
    return ", ".join(f"{one} {value}" if value else one for one in action.option_strings)


def _value(action: argparse.Action) -> str:
    if action.nargs == 0:
        return ""
    if isinstance(action.metavar, str):
        name = action.metavar
    else:
        name = f"{{{','.join(map(str, action.choices))}}}" if action.choices else action.dest.upper()
    return {"*": f"[{name} ...]", "?": f"[{name}]", "+": f"{name} [{name} ...]"}.get(str(action.nargs), name)


def _text(action: argparse.Action, program: str) -> str:
    values = {**vars(action), "prog": program}
    return " ".join(((action.help or "") % values).split())
