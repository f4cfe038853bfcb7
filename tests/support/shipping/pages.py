"""The pages of the documentation, and the commands that they and the help texts show."""

from __future__ import annotations

import re
from pathlib import Path

from layout_advise.cli import COMMANDS, module_of
from tests.support.paths import ROOT

DECISIONS = ROOT / "docs" / "decisions"
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs" / "howto").glob("*.md")),
    *sorted((ROOT / "docs" / "reference").glob("*.md")),
    *sorted(DECISIONS.glob("*.md")),
]
PLACEHOLDERS = {
    "RUN": "app.layout",
    "TERM": "A_4",
    "FILE": "out",
    "A": "a.layout",
    "B": "b.layout",
    "TOPIC": "reasons",
    "LANGUAGE": "c",
}


def blocks(page: Path) -> list[str]:
    """The lines of its ``sh`` blocks, comments removed."""
    found = re.findall(r"^```sh\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)
    return [line.strip() for block in found for line in block.replace("\\\n", " ").splitlines() if line.strip()]


def inline(page: Path) -> list[str]:
    """Commands within sentences and tables."""
    return re.findall(r"`(layout-advise [^`\n]+)`", page.read_text())


def helps() -> list[str]:
    """Commands that the help texts show; two blanks or more set off a remark."""
    lines = [line for name in COMMANDS for line in (module_of(name).__doc__ or "").splitlines()]
    return [re.split(r"\s{2,}", line.strip())[0] for line in lines if line.startswith("  layout-advise ")]


def commands() -> list[str]:
    shown = [line for page in PAGES for line in (*blocks(page), *inline(page)) if line.startswith("layout-advise ")]
    return sorted({*shown, *helps()})
