"""The guides of the documentation: their commands are typed as they stand, and do what the pages say."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from layout_advise.reports.model.contract import read_report
from layout_advise.tracer.snapshot.criu import find_criu
from tests.support.paths import ROOT
from tests.support.shipping.guides import commands, files, not_printed, script, typed

DOCS = ROOT / "docs"
HOW_TO = sorted((DOCS / "howto").glob("*.md"))
NEEDS = {"cxx-containers": "g++", "fortran": "gfortran", "no-root": "setpriv"}
"""What is typed besides the tool and gcc."""
UNPRIVILEGED = ("setpriv", "--bounding-set=-all", "--inh-caps=-all")
"""Starts a process without capabilities, which is what a process of a user who is not root has."""


def test_what_a_page_shows_is_found() -> None:
    typed_lines = "pip install x\ncc a.c   # remark\nfalse  # exit code 1\n"
    page = f"```c\n/* a.c */\nint a;\n```\n```c\nint b;\n```\n```sh\n{typed_lines}```\n"
    assert files(page) == {"a.c": "/* a.c */\nint a;\n"}
    assert commands(page) == ["cc a.c   # remark", "false  # exit code 1"]


@pytest.mark.parametrize(("line", "fails"), [("true", False), ("false", True), ("false # exit code 1", False)])
def test_another_exit_code_ends_the_script(line: str, fails: bool, tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text(f"```sh\n{line}\necho end\n```\n")
    assert "end" in script([line, "echo end"])
    if fails:
        with pytest.raises(AssertionError, match="false: 1"):
            typed(tmp_path / "page.md", tmp_path)
    else:
        assert typed(tmp_path / "page.md", tmp_path) == "end\n"


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_the_tutorial_changes_a_layout(tmp_path: Path) -> None:
    printed = typed(DOCS / "tutorial.md", tmp_path)
    assert "Store `datarr` as" in printed
    assert "datarr[FIELDS][2][X + 1][Y + 1]" in (tmp_path / "demo.program" / "wave.c").read_text()
    assert gained(tmp_path) > 1.0


def gained(folder: Path) -> float:
    """The lower end of what the changed program gained over the one that the change was advised for: 1.5 to 4 on a quiet
    machine, and just surely a gain beside other work."""
    before, after = (read_report(folder / f"{name}.layout") for name in ("demo", "changed"))
    assert (before.hotspots[0].verdict.action, after.hotspots[0].verdict.action) == ("change", "keep")
    known = after.hotspots[0].baseline
    assert known is not None
    assert known.speedup is not None
    return known.speedup.lo


def struct_changed(printed: str, folder: Path) -> None:
    """What the guide about ``apply`` has to come to."""
    assert "Store `particle` as" in printed
    assert "built; output and exit status are the original's" in printed
    assert "particle_P(p, i)" in (folder / "demo.program" / "particles.c").read_text()
    assert gained(folder) > 1.0


def test_lines_that_were_not_printed_are_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```text\nat 0x1f: 1,000 reads\n  gone\n```\n```none\n2.5 times\n```\n")
    assert not_printed(page, "x\nat  0xab:  7 reads\n") == ["  gone"]


@pytest.mark.parametrize("page", HOW_TO, ids=lambda page: page.stem)
def test_files_of_a_guide_are_found(page: Path) -> None:
    """What its commands compile is shown on the page."""
    text, shown = page.read_text(), files(page.read_text())
    typed_lines = commands(text)
    sources = {word for line in typed_lines for word in line.split() if word.endswith((".c", ".cpp", ".f90", ".toml"))}
    made = {line.rsplit("> ", 1)[1].split()[0] for line in typed_lines if "> " in line}
    assert sources - made <= set(shown)
    assert typed_lines


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("page", HOW_TO, ids=lambda page: page.stem)
def test_a_guide_can_be_typed(page: Path, tmp_path: Path) -> None:
    if (needed := NEEDS.get(page.stem)) is not None and shutil.which(needed) is None:
        pytest.skip(f"{needed} is not installed")
    if page.stem == "openmp" and find_criu() is None:
        pytest.skip("CRIU does not work here")
    printed = typed(page, tmp_path, *(UNPRIVILEGED if page.stem == "no-root" else ()))
    assert not_printed(page, printed) == []
    if page.stem == "change-a-struct":
        struct_changed(printed, tmp_path)
