"""The documentation as a site: it builds without a warning, reads without a network, and tells what the tool is today."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.paths import ROOT
from tests.support.shipping.write_reference import FOLDER, pages


@pytest.mark.parametrize("name", pages())
def test_the_reference_is_that_of_the_tool(name: str) -> None:
    assert (FOLDER / name).read_text() == pages()[name], "run `python -m tests.support.shipping.write_reference`"


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
