"""The guides of the documentation: their commands are typed as they stand, and do what the pages say."""

from __future__ import annotations

from pathlib import Path

import pytest

from layout_advise.reports.model.contract import read_report
from tests.support.paths import ROOT
from tests.support.shipping.guides import commands, files, script, typed

DOCS = ROOT / "docs"


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
def test_the_tutorial_changes_a_struct(tmp_path: Path) -> None:
    printed = typed(DOCS / "tutorial.md", tmp_path)
    assert "Store `particle` as" in printed
    assert "built; output and exit status are the original's" in printed
    before, after = (read_report(tmp_path / f"{name}.layout") for name in ("demo", "changed"))
    assert (before.hotspots[0].verdict.action, after.hotspots[0].verdict.action) == ("change", "keep")
    assert after.hotspots[0].baseline is not None
    assert "particle_P(p, i)" in (tmp_path / "demo.program" / "particles.c").read_text()
