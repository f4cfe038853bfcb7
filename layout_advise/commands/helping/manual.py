"""The man page, in roff (man macros, ``man 7 man``)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from layout_advise.commands.helping.catalogue import CommandEntry
from layout_advise.commands.helping.topics import EXIT_CODES, VARIABLES


def man_page(version: str, about: str, commands: Iterable[CommandEntry]) -> str:
    """The page of all commands. ``about`` is the description of the whole."""
    lines = [f'.TH LAYOUT\\-ADVISE 1 "" "layout\\-advise {version}" "User Commands"', ".SH NAME"]
    lines += ["layout\\-advise \\- measured data-layout advice for compiled programs", ".SH SYNOPSIS"]
    lines += [".B layout\\-advise", ".I COMMAND", "[options]", ".SH DESCRIPTION", *_paragraphs(about), ".SH COMMANDS"]
    for command in commands:
        lines += [f".SS {_plain(command.name)}", ".nf", f".B {_plain(command.usage)}", ".fi"]
        lines += [".PP", *_paragraphs(command.description)]
        for option in command.options:
            lines += [".TP", f".B {_plain(option.spelling)}", _plain(option.text)]
    lines.append(".SH EXIT STATUS")
    for code, text in EXIT_CODES.items():
        lines += [".TP", f".B {code}", _plain(text)]
    lines.append(".SH ENVIRONMENT")
    for name, text in VARIABLES.items():
        lines += [".TP", f".B {_plain(name)}", _plain(text)]
    return "\n".join(lines) + "\n"


def _paragraphs(text: str) -> Iterator[str]:
    """Paragraphs are filled; indented lines, the examples, stay as they are."""
    for number, block in enumerate(text.strip().split("\n\n")):
        if number:
            yield ".PP"
        examples = block.startswith("  ")
        if examples:
            yield ".nf"
        yield from (_plain(line) for line in block.splitlines())
        if examples:
            yield ".fi"


def _plain(text: str) -> str:
    """``text`` so that roff prints it: no escapes, no requests, hyphens that can be copied."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{text}" if text.startswith((".", "'")) else text
