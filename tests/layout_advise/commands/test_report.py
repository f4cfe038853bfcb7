"""``layout-advise report`` and ``compare``: reports that were saved, printed again and held against each other."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from layout_advise.cli import main
from layout_advise.reports.model import contract
from layout_advise.reports.model.candidate import Interval
from layout_advise.reports.words.headline import headline
from tests.support.run_folders import saved
from tests.support.sample_report import report


def slower(by: float) -> contract.Report:
    """The sample report with all measured speedups divided by ``by``."""

    def less(value: Interval | None) -> Interval | None:
        return Interval(value.median / by, value.lo / by, value.hi / by, 9) if value else None

    first = report().hotspots[0]
    moved = tuple(msgspec.structs.replace(c, speedup=less(c.speedup)) for c in first.candidates)
    return msgspec.structs.replace(report(), hotspots=(msgspec.structs.replace(first, candidates=moved),))


def test_report_prints_again_and_writes_the_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page, data = tmp_path / "out.html", tmp_path / "out.json"
    assert main(["report", str(saved(tmp_path / "r")), "--html", str(page), "--json", str(data)]) == 0
    assert capsys.readouterr().out.startswith("Store `particle` as SoA of x: step 3.6× faster")
    assert page.read_text().lstrip().lower().startswith("<!doctype html")
    assert contract.decode(data.read_bytes()) == report()


@pytest.mark.parametrize("form", [["--format", "html", "-o"], ["--html"]])
def test_the_page_s_command_can_be_pasted_unless_paths_are_left_out(form: list[str], tmp_path: Path) -> None:
    (hotspot,) = report().hotspots
    writable = tuple(msgspec.structs.replace(c, arrays=(("x",),)) for c in hotspot.candidates)
    made = msgspec.structs.replace(report(), hotspots=(msgspec.structs.replace(hotspot, candidates=writable),))
    run, page = saved(tmp_path / "r", made), tmp_path / "out.html"
    assert main(["report", str(run), *form, str(page)]) == 0
    assert f"layout-advise apply {run.absolute()} -o {run.absolute()}.patch --build make</code></p>" in page.read_text()
    assert main(["report", str(run), "--no-source", *form, str(page)]) == 0
    assert "layout-advise apply RUN -o RUN.patch --build make</code> (RUN: " in page.read_text()
    assert str(tmp_path) not in page.read_text()
    text = tmp_path / "out.txt"
    assert main(["report", str(run), "--no-source", "-o", str(text)]) == 0
    assert "layout-advise apply RUN " in text.read_text()
    assert str(tmp_path) not in text.read_text()


def test_report_json_is_all_there_is_on_stdout(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(saved(tmp_path / "r") / "report.json"), "--json", "-"]) == 0
    assert contract.decode(capsys.readouterr().out.encode()) == report()


def test_report_quiet_is_the_verdict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(saved(tmp_path / "r")), "-q"]) == 0
    assert capsys.readouterr().out == headline(report().hotspots[0]) + "\n"


def test_report_of_nothing_and_into_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(tmp_path)]) == 1
    assert "no report in" in capsys.readouterr().err
    assert main(["report", str(saved(tmp_path / "r")), "--json", str(tmp_path / "no" / "x.json")]) == 1
    assert "cannot write" in capsys.readouterr().err


@pytest.mark.parametrize(("by", "mark"), [(1.0, "~"), (2.0, "-"), (0.5, "+")])
def test_compare_marks_what_moved(tmp_path: Path, by: float, mark: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", str(saved(tmp_path / "a")), str(saved(tmp_path / "b", slower(by)))]) == 0
    out = capsys.readouterr().out
    assert out.startswith("step: change → change")
    measured = [line.split() for line in out.splitlines() if line.count("×") == 2]
    assert [words[0] for words in measured] == [mark]
    assert measured[0][-6:-3] == ["3.61×", "[3.50,", "3.70]"]


def test_compare_prints_names_as_they_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = msgspec.structs.replace(report().hotspots[0], symbol="work<int [red]>")
    other = saved(tmp_path / "a", msgspec.structs.replace(report(), hotspots=(first,)))
    assert main(["compare", str(other), str(other)]) == 0
    assert "work<int [red]>" in capsys.readouterr().out
    assert main(["compare", str(other), str(saved(tmp_path / "b"))]) == 4
    assert "no region in common" in capsys.readouterr().out
