"""Annotations that a run with a temporary layout proposes, written into the source."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from layout_advise.cli import main
from layout_advise.reports.model.candidate import Conversion, Interval
from layout_advise.reports.model.contract import Report
from layout_advise.reports.model.hotspot import Verdict
from layout_advise.reports.words.first_screen import views_command
from tests.support.run_folders import saved
from tests.support.sample_report import report
from tests.support.viewed.programs import COMPILERS, FLAGS, output, program, with_views

SUM = "static double summed(const std::vector<P> &c) { double z = 0; for (const P &p : c) z += p.x * p.m; return z; }"
BODY = """    for (int k = 0; k < 3; ++k)
        for (std::size_t i = 1; i < a.size(); ++i)
            a[i].x += a[i - 1].y;
    for (auto &p : b) {
        double sum = 0;
        for (const auto &q : a)
            sum += p.far(q);
        p.rho = sum;
    }
    for (auto *p : s)
        p->next = nullptr, p->tag += 1;
    for (auto p : b)
        a[0].x += p.x;
    b[1].rho = summed(a);"""


def run_of(folder: Path, pays: bool = True, **changes: object) -> Path:
    """A run whose region is ``run`` of ``program.cpp``, with a temporary layout of its structures ``P``."""
    content: Report = report()
    hotspot = content.hotspots[0]
    gain = Interval(1.6, 1.4, 1.7, 9)
    first = replace(
        hotspot.candidates[0],
        id="c1",
        temporary=True,
        speedup=gain,
        conversion=Conversion(1.0, 1.0, 1, ("x", "y"), ("x",), gain),
    )
    verdict: Verdict = replace(hotspot.verdict, action="change" if pays else "keep", candidate="c1" if pays else None)
    structures = tuple(replace(one, type="P") for one in hotspot.structures)
    values: dict[str, object] = {"symbol": "_Z3runv", "name": "run", "file": "program.cpp", "line": 24, **changes}
    region = replace(hotspot, structures=structures, candidates=(first, *hotspot.candidates[1:]), verdict=verdict, **values)
    return saved(folder / "app.layout", replace(content, hotspots=(region,)))


def annotate(folder: Path, source: str, *options: str) -> tuple[int, Path]:
    path, new = folder / "program.cpp", folder / "annotated.cpp"
    path.write_text(source)
    return main(["views", "--from", *options, str(path), "-o", str(new), "--", *FLAGS]), new


@pytest.mark.slow
def test_loops_are_annotated_and_hoisted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = program(BODY, SUM)
    code, new = annotate(tmp_path, source, str(run_of(tmp_path)))
    told = capsys.readouterr().err
    assert code == 0, told
    text = new.read_text()
    lines = [line.strip() for line in text.splitlines() if "soa_conversion" in line]
    assert lines == [
        '[[clang::soa_conversion_target("a")]] [[clang::soa_conversion_hoist(1)]]',
        "[[clang::soa_conversion]]",
        "[[clang::soa_conversion]] [[clang::soa_conversion_hoist(1)]]",
        "[[clang::soa_conversion]]",
    ]
    assert [line for line in text.splitlines() if "soa_conversion" not in line] == source.splitlines()
    assert "run, c1: the run copied in x, y; back x" in told
    assert "not annotated: program.cpp" in told
    assert "p is a copy of an element" in told
    made, members = with_views(text, tmp_path)
    assert [one for one, _, _ in members] == ["a", "b", "a", "s"]
    for compiler in COMPILERS:
        assert output(text, compiler, tmp_path) == output(source, compiler, tmp_path) == output(made, compiler, tmp_path)


def test_a_function_is_found_by_its_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = program("    a[0].x = summed(b);", SUM)
    line = 1 + next(k for k, text in enumerate(source.splitlines()) if text.startswith("static double summed"))
    code, new = annotate(tmp_path, source, str(run_of(tmp_path, name="L_part", line=line)))
    assert code == 0, capsys.readouterr().err
    assert "double z = 0; [[clang::soa_conversion]] for (const P &p : c)" in new.read_text()


def test_what_does_not_pay_is_not_annotated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = run_of(tmp_path, pays=False)
    assert annotate(tmp_path, program(BODY, SUM), str(run))[0] == 1
    assert "no layout gains where it is converted around each call" in capsys.readouterr().err
    assert annotate(tmp_path, program(BODY, SUM), str(run), "--candidate", "c9")[0] == 1
    assert "c9 is no layout of one" in capsys.readouterr().err
    code, new = annotate(tmp_path, program(BODY, SUM), str(run), "--candidate", "c1")
    assert code == 0
    assert new.read_text().count("soa_conversion]]") == 3


def test_other_files_and_loops_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert annotate(tmp_path, program(BODY, SUM), str(run_of(tmp_path, file="other.cpp")))[0] == 1
    assert "no region of the run is in program.cpp" in capsys.readouterr().err
    (tmp_path / "two").mkdir()
    assert annotate(tmp_path / "two", program("    dt = 1;"), str(run_of(tmp_path / "two")))[0] == 1
    assert "no loop over P in program.cpp can be annotated" in capsys.readouterr().err
    assert main(["views", "--candidate", "c1", str(tmp_path / "program.cpp")]) == 2


def test_trace_offers_the_command() -> None:
    plain = report().hotspots[0]
    verdict = replace(plain.verdict, action="change", candidate="c1", use=None)
    advised = replace(plain.candidates[0], id="c1", temporary=True)
    region = replace(plain, file="src/a.cpp", candidates=(advised,), verdict=verdict)
    assert views_command(region, "a.layout") == "layout-advise views --from a.layout src/a.cpp -o a_annotated.cpp"
    assert views_command(replace(region, file="a.c"), "a.layout") is None
    assert views_command(replace(region, candidates=(replace(advised, temporary=False),)), "a.layout") is None
    assert views_command(replace(region, verdict=replace(verdict, action="keep")), "a.layout") is None
