"""``layout-advise compare``: what is matched, marks, exit codes, JSON and Markdown."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from layout_advise.cli import main
from layout_advise.compare.match import matched_regions, matched_structures, source_name
from layout_advise.compare.runs import compared
from layout_advise.compare.times import faster
from layout_advise.reports.model.contract import Report
from layout_advise.reports.model.hotspot import Original, Span
from tests.support.changed.compared_runs import after, before, region, structure, timed, with_region
from tests.support.run_folders import saved

SPLIT = (structure("hot", "x v m", type="hot"),)


def compare(folder: Path, a: Report, b: Report, *options: str) -> int:
    return main(["compare", str(saved(folder / "a", a)), str(saved(folder / "b", b)), *options])


@pytest.mark.parametrize(("ns", "code", "mark"), [(100.0, 0, "+"), (300.0, 0, "~"), (310.0, 0, "~"), (400.0, 3, "-")])
def test_times_decide(ns: float, code: int, mark: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert compare(tmp_path, before(), after(SPLIT, ns)) == code
    line = next(line for line in capsys.readouterr().out.splitlines() if " a call, " in line)
    assert line.split()[0] == mark
    assert line.split()[-4:] == ["300", "ns", f"{ns:.0f}", "ns"]


def test_a_run_against_itself_does_not_differ(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert compare(tmp_path, before(), before()) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines() if "×" in line]
    assert [row[0] for row in rows] == ["~"] * 4


def test_nothing_in_common(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert compare(tmp_path, before(), with_region(before(), symbol="walk", file="walk.c")) == 4
    assert capsys.readouterr().out.splitlines() == [
        "The two runs have no region in common.",
        "only in A: step",
        "only in B: walk",
    ]


def test_addresses_counts_and_lines_do_not_matter() -> None:
    one = structure("p", "x v m", "y z")
    other = replace(one, id="s7", base="0x1234", count=17, bytes=17 * 40, layout="A_17", alloc_site="main.c:99")
    (pair,) = matched_structures(region(before()), region(with_region(before(), structures=(other,))))
    assert (pair.old, pair.new) == (one, other)


def test_places_of_allocation_match_what_has_another_name() -> None:
    old = with_region(before(), structures=(structure("p", "x"), structure("q", "x", alloc_site="main.c:40")))
    renamed = structure("r", "x", id="s9", alloc_site="main.c:40")
    new = with_region(before(), structures=(structure("p", "x"), renamed, structure("t", "x", alloc_site="main.c:70")))
    pairs = matched_structures(region(old), region(new))
    assert [(a and a.name, b and b.name) for a, b in ((p.old, p.new) for p in pairs)] == [
        ("p", "p"),
        ("q", "r"),
        (None, "t"),
    ]


@pytest.mark.parametrize(
    ("symbol", "name"),
    [("step.isra.0", "step"), ("step._omp_fn.3", "step"), ("step.constprop.0.isra.0", "step"), ("a.b", "a.b")],
)
def test_names_are_those_of_the_source(symbol: str, name: str) -> None:
    one = region(with_region(before(), symbol=symbol))
    assert source_name(one) == name


def test_regions_of_one_name_need_their_files() -> None:
    """Two static functions of one name: each is held against that of its own file."""
    first = region(before())
    second = replace(first, file="other.c", line=9)
    pairs = matched_regions((first, second), (replace(second, line=12), replace(first, line=70)))
    assert {(a.file, b.file) for a, b in pairs} == {("main.c", "main.c"), ("other.c", "other.c")}


def test_reports_without_times_of_processes() -> None:
    """The noise of both runs is what the ratio leaves open."""
    old, new = (replace(region(before()), original=Original(None, ns, ns), noise=Span(0.9, 1.2)) for ns in (300.0, 100.0))
    found = faster(old, new).speedup
    assert found is not None
    assert (found.median, round(found.lo, 3), round(found.hi, 3)) == (3.0, 2.7, 3.6)
    assert faster(replace(old, noise=None), replace(new, noise=None)).why == "neither run tells its noise"
    assert faster(replace(old, original=Original(None, None, None)), new).why == "its calls were not timed in both runs"


def test_other_arguments_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert compare(tmp_path, before(), replace(after(SPLIT, 900.0), command=("./app", "7"))) == 0
    assert "no ratio of times: the runs had other arguments" in capsys.readouterr().out


def test_gains_are_those_of_the_same_layout_of_the_same_structures() -> None:
    (found,) = compared(before(), with_region(before(), original=timed(300.0))).regions
    assert [(one.mark, one.old == one.new) for one in found.layouts] == [("~", True)] * 3
    moved = tuple(replace(one, layout={"s0": "A_7"}) for one in region(before()).candidates)
    (found,) = compared(before(), with_region(before(), candidates=moved)).regions
    assert len(found.layouts) == 3


def test_data_and_markdown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert compare(tmp_path, before(), after(SPLIT, 100.0), "--json", "-") == 0
    data = json.loads(capsys.readouterr().out)
    (one,) = data["regions"]
    assert (data["schema"], data["worse"], one["mark"], one["ns"]) == ("layout-advise.compare/1", False, "+", [300.0, 100.0])
    assert one["structures"][0]["types"] == ["particle", "hot"]
    assert compare(tmp_path, before(), after(SPLIT, 100.0), "--markdown", "-", "--json", str(tmp_path / "c.json")) == 0
    text = capsys.readouterr().out
    assert text.startswith("### step: change → undecided\n\n| | | A | B |\n|---|---|---|---|\n| + | a call, 3.")
    assert "| particle, 40 bytes | hot, 24 bytes |" in text
    assert json.loads((tmp_path / "c.json").read_text()) == data
    assert compare(tmp_path, before(), before(), "--markdown", "-", "--json", "-") == 2
