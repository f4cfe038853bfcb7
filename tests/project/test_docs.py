"""What the documentation shows can be typed: commands parse, make targets exist, links lead somewhere, examples run."""

from __future__ import annotations

import doctest
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from layout_advise.cli import COMMANDS, parser
from tests.support.paths import ROOT
from tests.support.shipping.pages import DECISIONS, PAGES, PLACEHOLDERS, blocks, commands


def words(command: str) -> list[str]:
    """What the shell would pass on: without redirections and remarks."""
    split = shlex.split(command, comments=True)[1:]
    split = split[: min((split.index(sign) for sign in ("<", ">") if sign in split), default=len(split))]
    return [PLACEHOLDERS.get(word, word) for word in split]


@pytest.mark.parametrize("command", commands())
def test_commands_parse(command: str) -> None:
    arguments = parser().parse_args(words(command))
    assert arguments.command == words(command)[0]


def test_the_pages_show_every_command() -> None:
    assert {words(c)[0] for c in commands()} == set(COMMANDS)


def test_make_targets_exist() -> None:
    text = "\n".join(line for page in PAGES for line in blocks(page)) + "\n".join(
        code for page in PAGES for code in re.findall(r"`(make [^`\n]+)`", page.read_text())
    )
    shown = set(re.findall(r"\bmake ([a-z-]+)", text))
    listed = subprocess.run(["make", "-s", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert {"demo", "test"} <= shown
    assert shown <= set(re.findall(r"^ +make ([a-z-]+)", listed, re.MULTILINE))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_examples_give_what_they_show(page: Path) -> None:
    result = doctest.testfile(str(page), module_relative=False, encoding="utf-8", optionflags=doctest.NORMALIZE_WHITESPACE)
    assert result.failed == 0
    assert result.attempted >= (20 if page.name == "algebra.md" else 0)


def test_drawings_are_those_of_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    page = (ROOT / "docs" / "algebra.md").read_text()
    shown = re.findall(r"^([A-Z.]{32})    (\S.*)$", page, re.MULTILINE)
    command = next(c for c in blocks(ROOT / "docs" / "algebra.md") if "5@0:4" in c)
    arguments = parser().parse_args([w for w in words(command) if w not in ("--svg", "steps.svg")])
    assert arguments.carry_out(arguments) == 0
    printed = capsys.readouterr().out
    assert len(shown) == 3
    for drawing, term in shown:
        assert re.search(rf"{re.escape(term)}\n.*\n.*\n  drawing  {re.escape(drawing)}", printed)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text())
    files = [link for link in links if link.endswith((".md", ".json", ".png", ".svg", ".ipynb"))]
    assert [link for link in files if not (page.parent / link).exists()] == []


def test_the_index_has_every_decision() -> None:
    """By its number, its title and its page."""
    index = (DECISIONS / "README.md").read_text()
    for page in sorted(DECISIONS.glob("0*.md")):
        number, title = page.read_text().splitlines()[0].removeprefix("# ").split(". ", 1)
        assert page.name.startswith(f"{int(number):04d}-")
        assert f"| {number} | [{title}]({page.name}) |" in index
    assert len(re.findall(r"^\| \d+ \|", index, re.MULTILINE)) == len(list(DECISIONS.glob("0*.md")))


def test_decisions_that_are_referred_to_exist() -> None:
    """Code, tests and pages name decisions by number."""
    told = subprocess.run(
        ["git", "grep", "-hoE", "decisions/[0-9]{4}"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    numbers = {line.rsplit("/", 1)[1] for line in told.stdout.split()}
    assert numbers <= {page.name[:4] for page in DECISIONS.glob("0*.md")}
