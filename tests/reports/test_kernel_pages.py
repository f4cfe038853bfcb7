"""The report on kernels shows the layout that the verdict is about, and names the clock of its figures."""

from __future__ import annotations

import pytest

from layout_advise.reports.model.candidate import Interval
from layout_advise.reports.model.hotspot import Verdict
from layout_advise.reports.model.kernels import (
    EdgeDifference,
    KernelClock,
    KernelDevice,
    KernelLayout,
    KernelProgramReport,
    KernelUse,
    Marshalling,
    MemberReport,
    OpenclReport,
    RecordReport,
)
from layout_advise.reports.pages.kernel_pages import page, terminal

SURE = Interval(4.1, 4.0, 4.2, 5)


def layout(name: str, speedup: float, paid: int | None) -> KernelLayout:
    gain = Interval(speedup, speedup - 0.1, speedup + 0.1, 5)
    cost = Marshalling(1.0, 2.0, 3.0, 4.0, paid)
    source, moving = f"/* program {name} */", f"/* moving {name} */"
    return KernelLayout(
        name, name.upper(), {"S": "a[g]"}, "verified", None, None, 4.0, gain, gain, None, cost, source, moving
    )


def report(clock: KernelClock, *layouts: KernelLayout) -> OpenclReport:
    verdict = Verdict("change", "c2", 4.1, "gain", "Change k.", interval=SURE)
    device = KernelDevice("P", "D", "V", 2, clock, 1e6, 2e6, Interval(1.0, 0.99, 1.01, 5), layouts, verdict)
    differing = (EdgeDifference("a", "b", 4.0, 8.0, "turns"), EdgeDifference("a", "c", 4.0, None, "not-run"))
    members = tuple(MemberReport(name, "float", 4 * k, 4, True) for k, name in enumerate("abc"))
    groups = (("a", "b", "c"),)
    record = RecordReport("S", 12, 64, members, (), 64, groups, recorded_clusters=groups, differences=differing)
    program = KernelProgramReport("k.cl", (KernelUse("k", "k.cl", 1, 1, (64,), None),), (record,), (device,))
    return OpenclReport("layout-advise.opencl/1", "0", "now", (), (program,), {})


def test_the_advised_layout_is_marked_and_its_source_shown() -> None:
    made = report("cpu", layout("c1", 4.2, 3), layout("c2", 4.1, 1), layout("c3", 1.0, None))
    html, text = page(made), terminal(made)
    assert "program c2" in html
    assert "moving c2" in html
    assert "program c1" not in html
    assert html.count("verified; advised") == text.count("verified; advised") == 1
    assert "paid after 3 rounds" in html
    assert "paid after 1 round<" in html
    assert "no sure gain to pay it" in html


@pytest.mark.parametrize(("clock", "name"), [("cpu", "processor time"), ("device", "events")])
def test_each_figure_has_its_clock(clock: KernelClock, name: str) -> None:
    made = report(clock, layout("c2", 4.1, 1))
    told = f"Original 1 ms by {name}, 2 ms of elapsed time; against itself 1.00× [0.99, 1.01] in 5 fresh processes."
    for text in (page(made), terminal(made, width=160)):
        assert told in text
        assert f"speedup by {name}" in text
    assert "<th>by elapsed time</th>" in page(made)


def test_differences_of_the_graphs_are_explained() -> None:
    made = report("cpu", layout("c2", 4.1, 1))
    html, text = page(made), terminal(made, width=300)
    words = "1 by loops that run more or less often than assumed, or branches not taken"
    assert words in html
    assert words in text
    assert "2 edges with another distance in recorded accesses" in html
    assert "<td>not accessed by the recorded work items</td>" in html
