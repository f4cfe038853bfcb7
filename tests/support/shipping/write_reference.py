"""Writes the pages of ``docs/reference/``: ``python -m tests.support.shipping.write_reference``."""

from __future__ import annotations

from layout_advise.cli import parser
from layout_advise.commands.helping import reference
from layout_advise.commands.helping.catalogue import commands_of
from layout_advise.reports.model import contract
from tests.support.paths import ROOT

FOLDER = ROOT / "docs" / "reference"


def pages() -> dict[str, str]:
    """The texts of the pages by file name."""
    return {
        "commands.md": reference.commands_page(commands_of(parser())),
        "environment.md": reference.environment_page(),
        "reasons.md": reference.reasons_page(),
        "json.md": reference.json_page(contract.schema()),
    }


if __name__ == "__main__":
    for name, text in pages().items():
        (FOLDER / name).write_text(text)
