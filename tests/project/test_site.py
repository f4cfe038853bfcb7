"""The documentation as a site: it builds without a warning, reads without a network, and tells what the tool is today."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.support.house import PRODUCT
from tests.support.paths import ROOT
from tests.support.shipping.write_reference import FOLDER, pages


@pytest.mark.parametrize("name", pages())
def test_the_reference_is_that_of_the_tool(name: str) -> None:
    assert (FOLDER / name).read_text() == pages()[name], "run `python -m tests.support.shipping.write_reference`"


def test_the_index_has_every_page() -> None:
    """Without having to build the site."""
    named = set((ROOT / "docs" / "index.md").read_text().splitlines())
    found = [page.relative_to(ROOT / "docs").with_suffix("") for page in (ROOT / "docs").glob("**/*.md")]
    pages_of_their_own = [str(page) for page in found if page.parent.name != "decisions" and page.parts[0] != "_build"]
    assert set(pages_of_their_own) - named == {"index"}


def test_the_wheel_takes_all_that_is_no_python() -> None:
    """What code reads at run time is package data, or it is missing in a wheel only."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]
    globs = {name.removeprefix("layout_advise.").replace(".", "/"): made for name, made in settings.items()}
    told = subprocess.run(["git", "ls-files", *PRODUCT], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    files = [Path(line) for line in told.splitlines() if not line.endswith(".py") and not (ROOT / line).is_dir()]
    left = [f for f in files if not any(f.relative_to(f.parts[0]).match(g) for g in globs.get(f.parts[0], ()))]
    assert [str(f) for f in left] == []


@pytest.mark.slow
def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", "-d", str(tmp_path / "trees")]
    done = subprocess.run([*command, ROOT / "docs", tmp_path / "site"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    page = (tmp_path / "site" / "reference" / "commands.html").read_text()
    assert "--allow-reassociation" in page
    assert 'src="http' not in page
    assert 'rel="stylesheet" type="text/css" href="http' not in page
    assert all((tmp_path / "site" / "decisions" / f"{one.stem}.html").exists() for one in ROOT.glob("docs/decisions/*.md"))
