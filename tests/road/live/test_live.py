"""The whole road with layouts tried in the running program.

What is asserted holds whatever the machine's load: that the program ran so to its end and did the same, and what was told.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from layout_advise.reports.model.candidate import LiveReport
from layout_advise.reports.model.contract import Report
from layout_advise.reports.pages import html
from layout_advise.reports.pages.terminal import render
from tests.support.command import advise

SOURCE = Path(__file__).with_name("live.c")


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    built = tmp_path_factory.mktemp("live") / "live"
    subprocess.run(["gcc", "-Wall", "-Wextra", "-Werror", "-g", "-O2", "-o", str(built), str(SOURCE)], check=True)
    return built


def studied(program: Path, which: str, hotspot: str, folder: Path, *options: str) -> Report:
    return advise([program, which], "--hotspot", hotspot, "--restores", "2", "--candidates", "1", *options, folder=folder)


def tried(report: Report) -> list[LiveReport]:
    """What came of the layouts that were tried."""
    tried = [c for c in report.hotspots[0].candidates if c.live is not None]
    found = [c.live for c in tried if c.live is not None]
    assert found
    text = render(report)
    assert "in the running program: " in text
    assert "bytes of output as ordinarily" in text
    assert {c.evidence for c in tried} == {"live"}
    assert all({t.term for t in c.error_budget} >= {"live", "form"} for c in tried)
    for live in found:
        assert live.held
        assert live.exit_status == 5
        assert live.speedup is not None
        assert live.ns_original is not None
        assert live.ns_layout is not None
        assert live.speedup.lo <= live.speedup.median <= live.speedup.hi
        assert min(live.ns_original, live.ns_layout, live.seconds_original, live.seconds_layout) > 0
        kept = live.course
        assert kept is not None
        assert kept.first == report.hotspots[0].call
        assert kept.calls == live.calls + live.passed
        assert sum(kept.left_out) == live.passed
        assert all(value is not None and value > 0 for value in kept.original_ns)
        assert [value is None for value in kept.layout_ns] == [left == kept.stretch for left in kept.left_out]
    assert ">Calls in the running program, in their order<" in html.render(report)
    return found


@pytest.mark.slow
def test_a_structure_that_is_only_read(program: Path, tmp_path: Path) -> None:
    report = studied(program, "gather", "gather", tmp_path, "--live")
    for live in tried(report):
        assert live.calls + report.hotspots[0].call - 1 == 90
        assert live.passed == 0
        assert (live.conversions, live.converted, live.own_words) == (1, False, 0)
        assert live.course is not None
        assert set(live.course.copying_ns) == {0.0}
    assert "In the running program" in (tmp_path / "run" / "report.html").read_text()


@pytest.mark.slow
def test_a_structure_that_the_region_writes(program: Path, tmp_path: Path) -> None:
    for live in tried(studied(program, "advance", "advance", tmp_path, "--live")):
        assert live.conversions == live.calls + 1  # back after each call
        assert live.course is not None
        assert all(live.course.copying_ns)
        assert live.passed == 0


@pytest.mark.slow
def test_a_loop_whose_data_the_program_writes_between_its_entries(program: Path, tmp_path: Path) -> None:
    for live in tried(studied(program, "loop", "main", tmp_path, "--live")):
        assert live.conversions == live.calls  # once at the start, then before each further entry
        assert live.converted


@pytest.mark.slow
def test_calls_whose_loaded_pointer_leads_to_other_records_are_left_to_the_original(tmp_path: Path) -> None:
    built = tmp_path / "far"
    source = SOURCE.with_name("far.c")
    subprocess.run(["gcc", "-Wall", "-Wextra", "-Werror", "-g", "-O2", "-o", built, source], check=True)
    alone = subprocess.run([built], capture_output=True)
    report = studied(built, "", "gather", tmp_path, "--live", "--call", "5")
    for live in tried(report):
        assert (live.calls, live.passed, live.stopped, live.faulted) == (90 - 4 - 6, 6, 0, 6)
        assert live.output_bytes == len(alone.stdout)
    assert "6: other memory" in render(report)
    assert "no access went to a place that is not that of the layout" in render(report)


@pytest.mark.slow
@pytest.mark.parametrize(("which", "hotspot"), [("short", "gather"), ("frame", "pick")])
def test_short_calls_run_so_without_times(program: Path, tmp_path: Path, which: str, hotspot: str) -> None:
    """zstd: a mock-up wrote to where the original's frame would be, and there lay the agent's own."""
    alone = subprocess.run([program, which], capture_output=True)
    report = studied(program, which, hotspot, tmp_path, "--live")
    (region,) = report.hotspots
    rows = [c for c in region.candidates if c.live is not None]
    assert rows
    for row in rows:
        assert row.live is not None
        assert row.evidence == "verified"
        assert (row.live.speedup, row.live.ns_original, row.live.ns_layout, row.live.timed) == (None, None, None, 0)
        assert row.live.calls > 0
        assert row.live.calls + row.live.passed == region.calls - region.call + 1
        assert (row.live.exit_status, row.live.output_bytes) == (5, len(alone.stdout))
    assert "too short to be timed by itself" in render(report)


@pytest.mark.slow
def test_nothing_is_tried_where_that_is_not_wanted(program: Path, tmp_path: Path) -> None:
    report = studied(program, "gather", "gather", tmp_path, "--no-live")
    assert not any(c.live for c in report.hotspots[0].candidates)
    assert "In the running program" not in render(report)
