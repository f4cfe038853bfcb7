"""The whole road on programs whose calls differ: in the fields they use, in size, in the array they work on.

What is asserted holds whatever the machine's load: which kinds there are, what was compared where, and that the numbers
given for all calls are those of the kinds, weighted. The verdict itself is the load's too.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from layout_advise.reports.model.candidate import CandidateReport
from layout_advise.reports.model.hotspot import HotspotReport
from layout_advise.reports.pages.terminal import render
from tests.support.command import advise

SOURCE = Path(__file__).with_name("kinds.c")


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    built = tmp_path_factory.mktemp("kinds") / "kinds"
    subprocess.run(["gcc", "-Wall", "-Wextra", "-Werror", "-g", "-O2", "-o", str(built), str(SOURCE)], check=True)
    return built


def measured(program: Path, how: str, folder: Path) -> HotspotReport:
    report = advise([program, how], "--hotspot", how, "--restores", "5", "--candidates", "2", folder=folder)
    assert all(kind.text in render(report) for kind in report.hotspots[0].kinds)
    return report.hotspots[0]


def check_weighted(hotspot: HotspotReport, kinds: int = 2) -> list[CandidateReport]:
    """The verified candidates with speedups, after a look at these; compared at three calls of each of these ``kinds``."""
    found = [c for c in hotspot.candidates if c.speedup is not None]
    for candidate in found:
        assert candidate.evidence == "verified"
        assert candidate.verification is not None
        assert candidate.verification.calls == 3 * kinds
        parts = [(hotspot.kinds[k.kind].share, k.speedup) for k in candidate.kinds]
        rest = 1.0 - sum(share for share, _ in parts)
        for end in ("median", "lo", "hi"):
            whole = 1.0 / (rest + sum(share / getattr(speedup, end) for share, speedup in parts))
            assert getattr(candidate.speedup, end) == pytest.approx(whole)
    return found


@pytest.mark.slow
def test_calls_that_use_different_fields(program: Path, tmp_path: Path) -> None:
    hotspot = measured(program, "fields", tmp_path)
    assert {(kind.text, kind.calls, kind.reason) for kind in hotspot.kinds} == {
        ("odd calls", 120, None),
        ("even calls", 120, None),
    }
    assert sum(kind.share for kind in hotspot.kinds) == pytest.approx(1.0)
    assert [kind.call % 2 for kind in hotspot.kinds] == [int(kind.text == "odd calls") for kind in hotspot.kinds]
    assert hotspot.call == hotspot.kinds[0].call
    (cells,) = hotspot.structures
    assert [field.name for field in cells.fields] == ["a", "b", "c", "d"]  # one call uses two of them
    assert check_weighted(hotspot)
    assert all(len(c.kinds) == 2 for c in hotspot.candidates if c.speedup is not None)


@pytest.mark.slow
def test_calls_of_different_sizes(program: Path, tmp_path: Path) -> None:
    hotspot = measured(program, "levels", tmp_path)
    assert {kind.text: kind.calls for kind in hotspot.kinds} == {f"call {k} of every 3": 80 for k in (1, 2, 3)}
    assert hotspot.kinds[0].text == "call 1 of every 3"  # it takes most of the time
    assert hotspot.kinds[0].share > 0.35
    (cells,) = hotspot.structures
    assert cells.count == 200000
    assert check_weighted(hotspot)


@pytest.mark.slow
def test_an_array_of_the_same_place_of_allocation_has_the_layout_too(program: Path, tmp_path: Path) -> None:
    hotspot = measured(program, "arrays", tmp_path)
    assert [kind.text for kind in hotspot.kinds] == ["odd calls", "even calls"]
    found = check_weighted(hotspot)
    assert found
    assert all(k.speedup is not None and k.speedup.lo < k.speedup.hi for c in found for k in c.kinds)  # measured at both


@pytest.mark.slow
def test_a_block_that_is_larger_the_next_time_has_the_layout_too(program: Path, tmp_path: Path) -> None:
    """At the same address: the layout of the smaller one does not reach its end."""
    hotspot = measured(program, "again", tmp_path)
    assert len(hotspot.kinds) == 2
    (cells,) = hotspot.structures
    assert cells.count == (50000 if hotspot.call % 2 else 100000)
    found = check_weighted(hotspot)
    assert found
    assert all(len(c.kinds) == len(hotspot.kinds) for c in found)


@pytest.mark.slow
def test_calls_that_leave_the_structure_alone_gain_nothing(program: Path, tmp_path: Path) -> None:
    hotspot = measured(program, "apart", tmp_path)
    assert [kind.text for kind in hotspot.kinds] == ["odd calls", "even calls"]
    found = check_weighted(hotspot, 1)
    assert found
    for candidate in found:
        untouched = candidate.kinds[1].speedup
        assert untouched is not None
        assert (untouched.lo, untouched.hi) == (1.0, 1.0)
