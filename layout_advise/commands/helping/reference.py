"""Pages of the documentation that are made of the tool itself, in Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from textwrap import fill
from typing import Any

from layout_advise.commands.helping.catalogue import CommandEntry
from layout_advise.commands.helping.topics import EXIT_CODES, NO_ANSWER, OTHER_ANSWERS, VARIABLES

MADE = "<!-- made by `python -m tests.support.shipping.write_reference`: changes belong into the code -->\n"


def commands_page(commands: Iterable[CommandEntry]) -> str:
    """Every command with its description, examples and options."""
    about = "The same as `--help` of each command, and as the man page (`layout-advise help --man`)."
    parts = [f"# Commands\n\n{MADE}\n{about}\n"]
    for command in commands:
        parts.append(f"## {command.name}\n\n{_described(command.description)}\n\n```text\n{_wrapped(command.usage)}\n```\n")
        rows = "\n".join(f"| `{_cell(one.spelling)}` | {_cell(one.text)} |" for one in command.options)
        parts.append(f"| option | what |\n|---|---|\n{rows}\n")
    return "\n".join(parts)


def environment_page() -> str:
    """Exit codes and variables."""
    codes = "\n".join(f"| {code} | {_cell(text)} |" for code, text in EXIT_CODES.items())
    names = "\n".join(f"| `{name}` | {_cell(text)} |" for name, text in VARIABLES.items())
    return (
        f"# Exit codes and variables\n\n{MADE}\n| exit code | when |\n|---|---|\n{codes}\n\n"
        f"Where an option says the same as a variable, the option counts.\n\n| variable | what |\n|---|---|\n{names}\n"
    )


def reasons_page() -> str:
    """The words of ``verdict.reason``."""
    measured = "\n".join(f"| `{name}` | {_cell(text)} |" for name, text in OTHER_ANSWERS.items())
    rows = "\n".join(f"| `{name}` | {_cell(why)} | {_cell(remedy)} |" for name, (why, remedy) in NO_ANSWER.items())
    return (
        f"# Reasons\n\n{MADE}\nEvery verdict has a `reason` in the report's JSON: a word that scripts can rely on. "
        f"With times that were measured:\n\n| reason | what it says |\n|---|---|\n{measured}\n\n"
        f"Where there is no answer:\n\n| reason | why | what to do |\n|---|---|---|\n{rows}\n"
    )


def json_page(schema: Mapping[str, Any]) -> str:
    """Every property of ``report.json``, by the classes of its schema, the report first."""
    head = (
        f"# report.json\n\n{MADE}\n`report.json` in the run directory, also by `report --format json`, is one object "
        "`Report`. Properties may be added and are never renamed. Its JSON schema is "
        "[report.schema.json](../report.schema.json). "
        "`?`: may be null. A speedup is the old time over the new one; a share is between 0 and 1.\n"
    )
    parts = {name: one for name, one in schema["$defs"].items() if "properties" in one}
    order = sorted(parts, key=lambda name: (name != "Report", name))
    return "\n".join([head, *(_json_part(name, parts[name]) for name in order)])


def _json_part(name: str, part: Mapping[str, Any]) -> str:
    rows = "\n".join(
        f"| `{key}` | {_cell(_json_type(value))} | {_cell(value.get('description', ''))} |"
        for key, value in part["properties"].items()
    )
    about = " ".join(part.get("description", "").replace("``", "`").split())
    return f"## {name}\n\n{about}\n\n| property | type | what |\n|---|---|---|\n{rows}\n"


def _json_type(value: Mapping[str, Any]) -> str:
    """A type in a few characters: ``number?``, ``list of Interval``."""
    if "$ref" in value:
        return str(value["$ref"]).rpartition("/")[2]
    if "anyOf" in value:
        some = [_json_type(one) for one in value["anyOf"] if one != {"type": "null"}]
        return " or ".join(some) + ("?" if len(some) < len(value["anyOf"]) else "")
    if "enum" in value:
        return ", ".join("null" if one is None else f"`{one}`" for one in value["enum"])
    if value.get("type") == "array":
        return f"list of {_json_type(value['items'])}" if isinstance(value.get("items"), Mapping) else "list"
    if value.get("type") == "object" and isinstance(value.get("additionalProperties"), Mapping):
        return f"object of {_json_type(value['additionalProperties'])}"
    return str(value.get("type", "any"))


def _described(text: str) -> str:
    """A command's description: indented examples become a block of the shell, with remarks behind them."""
    lines, inside = [], False
    for line in text.splitlines():
        example = line.startswith("  ") or (inside and not line.strip())
        if example != inside:
            lines.append("```sh" if example else "```\n" if line.strip() else "```")
            inside = example
        lines.append(re.sub(r"(\S)\s{2,}(\S.*)$", r"\1    # \2", line.strip()) if example else line)
    return re.sub(r"\n+```\n", "\n```\n", "\n".join([*lines, "```"] if inside else lines))


def _wrapped(usage: str) -> str:
    """A usage in lines that a page has room for."""
    return fill(usage, 90, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
