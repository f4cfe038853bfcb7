"""Commands that only start another program: ``env X=1 prog``, ``sh -c prog``. The program is what is studied."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from types import MappingProxyType

from layout_advise.errors import UsageError

_SHELLS = ("sh", "bash", "dash", "ash", "zsh", "ksh")
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
_SHELL_WORDS = (
    "if",
    "for",
    "while",
    "until",
    "case",
    "cd",
    "export",
    "source",
    ".",
    "ulimit",
    "set",
    "eval",
    "time",
    "{",
    "!",
)
_SPECIAL = re.compile(r"[|&;<>()$`*?\[\]#~\n{}!\\]")
_ALONE = "give the program itself after --"


@dataclass(frozen=True, slots=True)
class Unwrapped:
    """The program's own ``command`` and the variables that are set for it."""

    command: tuple[str, ...]
    variables: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))


def unwrapped(command: Sequence[str]) -> Unwrapped:
    """The program that ``command`` starts in the end, through ``env`` and shells. Raises :class:`UsageError` where that
    cannot be told from the command."""
    words, variables = list(command), dict[str, str]()
    while words:
        name = PurePath(words[0]).name
        if name == "env" and len(words) > 1:
            words = _after_env(words, variables)
        elif name in _SHELLS and "-c" in words[1:2]:
            words = _in_shell(words, variables)
        else:
            return Unwrapped(tuple(words), MappingProxyType(variables))
    raise UsageError("no program given", f"{command[0]} starts none", _ALONE)


def _after_env(words: Sequence[str], variables: dict[str, str]) -> list[str]:
    rest = list(words[1:])
    if rest[0] == "--":
        del rest[0]
    elif rest[0].startswith("-"):
        raise UsageError(f"cannot follow {words[0]} {rest[0]}", "only its variables are understood", _ALONE)
    return _assigned(rest, variables)


def _assigned(words: list[str], variables: dict[str, str]) -> list[str]:
    """``words`` without the assignments that they begin with, which are put into ``variables``."""
    while words and _ASSIGNMENT.match(words[0]):
        name, _, value = words.pop(0).partition("=")
        variables[name] = value
    return words


def _in_shell(words: Sequence[str], variables: dict[str, str]) -> list[str]:
    """The one plain command that a shell is given as text."""
    text = words[2] if len(words) > 2 else ""
    try:
        inside = shlex.split(text)
    except ValueError:
        inside = []
    if inside[:1] == ["exec"]:
        del inside[0]
    inside = _assigned(inside, variables)
    if not inside or _SPECIAL.search(text) or inside[0] in _SHELL_WORDS or len(words) > 3:
        what = f"cannot follow {words[0]} -c"
        raise UsageError(what, "its text is not one plain command, and a shell takes no time of its own", _ALONE)
    return inside
