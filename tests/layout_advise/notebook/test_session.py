"""Runs as objects in a notebook: short texts, tables, layouts, a slider, the cell magic."""

from __future__ import annotations

import html
from pathlib import Path

import msgspec
import pytest

import layout_advise as la
from layout_advise.errors import LayoutAdviseError, RunDirError, UsageError
from layout_advise.notebook.magic import advise_cell
from layout_advise.notebook.session import AdviceRun, trace_program
from layout_advise.notebook.timing import TimedHere
from layout_advise.reports.exports import rows
from tests.support.run_folders import saved
from tests.support.sample_report import report


@pytest.fixture
def run(tmp_path: Path) -> AdviceRun:
    opened = la.open(saved(tmp_path / "r"))
    assert isinstance(opened, AdviceRun)
    return opened


def test_all_of_a_run_has_a_short_text(run: AdviceRun) -> None:
    """The report's was 376,000 characters once."""
    assert repr(run).endswith("r: Store `particle` as SoA of x: step 3.6× faster (3.5–3.7), the program 1.83×.>")
    whole = run.report
    parts = (
        whole,
        *whole.hotspots,
        *run.candidates,
        *run.structures,
        run.regions,
        run.candidates,
        run.layout("c1"),
        run.show(),
    )
    assert all(len(repr(part)) < 200 for part in parts)
    assert repr(run.candidates) == "<2 layouts: c1, c2>"
    assert repr(whole) == "<Report of ./app: step: change>"


def test_tables_are_read_by_number_and_name(run: AdviceRun) -> None:
    assert run.candidates[0] is run.candidates["c1"]
    assert run.structures["particles"].element_bytes == 80
    assert run.regions["step"].line == 63
    assert [one.id for one in run.candidates] == ["c1", "c2"]
    with pytest.raises(UsageError, match="no layout c9"):
        run.candidates["c9"]


def test_tables_become_html_and_frames(run: AdviceRun) -> None:
    shown = run.structures._repr_html_()
    assert "<td>x, v&lt;x&gt;</td>" in shown
    frame = run.candidates.to_frame()
    assert list(frame.columns) == list(rows.COLUMNS)
    assert list(frame["candidate"]) == ["c1", "c2"]
    bare = msgspec.structs.replace(report(), hotspots=(msgspec.structs.replace(report().hotspots[0], candidates=()),))
    assert len(AdviceRun(run.path, bare).candidates) == 0
    assert "<table>" in AdviceRun(run.path, bare).candidates._repr_html_()


def test_a_report_shows_itself_in_a_frame_of_its_own(run: AdviceRun) -> None:
    frame = run._repr_html_()
    assert frame.startswith('<iframe srcdoc="&lt;!doctype html&gt;')
    inside = html.unescape(frame.split('srcdoc="')[1].split('" sandbox=')[0])
    assert inside == run.show().page
    assert "src=" not in frame.replace("srcdoc=", "")


def test_layouts_show_drawing_and_change(run: AdviceRun) -> None:
    layout = run.layout("c1")
    assert layout.change.startswith(" struct particle {")
    assert layout.terms == {"s0": "S_{0,1;2} ⊗ A_1000"}
    assert "<svg" in layout._repr_html_()
    assert "cache lines of a call, modelled: 1 250 now, 250 (−80 %) then" in layout._repr_html_()
    assert "double v&lt;x&gt;;" in layout._repr_html_()


def test_a_slider_redraws_the_layout(run: AdviceRun) -> None:
    slider, shown, timed = run.explore().children
    assert "<b>c1</b>" in shown.value
    button, said = timed.children
    button.click()
    assert said.value == "cannot time c1: its mock-up is not in the run directory; trace the program again"
    slider.value = "c2"
    assert "<b>c2</b>" in shown.value
    assert said.value == ""


def test_a_mock_up_that_cannot_be_called_is_told(run: AdviceRun) -> None:
    """Here, and in the process of its own: damaged files, no such candidate, a mock-up that crashes."""
    mockup = run.path / "mockups" / "c1.c"
    mockup.parent.mkdir()
    mockup.write_text("int main(void) { return 0; }\n")
    with pytest.raises(RunDirError, match=r"cannot time c1 on other data: .*candidates\.json"):
        run.time("c1")
    (run.path / "candidates.json").write_text("[]")
    with pytest.raises(RunDirError, match="no candidate c1 in "):
        run.time("c1")
    with pytest.raises(UsageError, match="no layout c9"):
        run.time("c9")
    told = TimedHere("c1", 3000.0, 1000.0)
    assert str(told).startswith("c1 on NumPy data here: 1.0 µs a call, unchanged layout 3.0 µs: 3.00 times as fast")


def test_what_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(RunDirError, match="no report in"):
        la.open(tmp_path)
    with pytest.raises(AttributeError, match="nothing"):
        la.nothing  # noqa: B018
    with pytest.raises(LayoutAdviseError, match="no advice on"):
        trace_program([tmp_path / "missing"], tmp_path / "out")


@pytest.mark.parametrize(
    ("line", "cell", "words"),
    [
        ("--lang fortran", "", "cannot read the words"),
        ("", "int main(void) { return x; }", "does not compile"),
        ("--lang c++", "int main() { return undeclared; }", "undeclared"),
    ],
)
def test_cells_that_cannot_be_advised_on_say_why(line: str, cell: str, words: str) -> None:
    with pytest.raises(UsageError) as raised:
        advise_cell(line, cell)
    assert words in raised.value.line()
