"""Reports of several regions on the terminal: each has its first screen, the tables are those of the hottest one."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from layout_advise.cli import main
from layout_advise.reports.model.contract import Report, encode
from layout_advise.reports.pages import terminal
from tests.support.sample_report import report


def regions(count: int) -> Report:
    (first,) = report().hotspots
    found = tuple(msgspec.structs.replace(first, symbol=f"step{k}", share=0.6 / (k + 1)) for k in range(count))
    return msgspec.structs.replace(report(), hotspots=found)


def test_the_others_have_their_first_screens() -> None:
    text = terminal.render(regions(6))
    one = terminal.render(regions(1))
    for k in range(6):
        assert text.count(f"Store `particle` as SoA of x: step{k} 3.6× faster") == 1
        assert text.count(f"hotspot step{k} (main.c:63)") == 1
    assert text.count("  s0 particles: ") == 1
    assert "the tables of the other 5 regions: `layout-advise report RUN --all`, report.html" in text
    further = len(text.splitlines()) - len(one.splitlines())
    assert further <= 5 * (terminal.FIRST_LINES + 2) + 2
    assert "--all" not in one


@pytest.mark.parametrize("option", ["--all", "-v"])
def test_all_of_them_on_demand(option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "report.json").write_bytes(encode(regions(3)))
    assert main(["report", str(tmp_path), option]) == 0
    text = capsys.readouterr().out
    assert text.count("  s0 particles: ") == 3
    assert "the tables of the other" not in text
