"""The whole road on hotspots that call what is not lifted with them, and that have ways which no call takes.

What is asserted holds whatever the machine's load: what was compared, what was told, and what was not claimed.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from layout_advise.mockup.ir.lifted import ANOTHER_CALLEE
from layout_advise.reports.model.hotspot import HotspotReport
from layout_advise.reports.pages.terminal import render
from layout_advise.reports.words.headline import headline
from tests.support.command import advise

SOURCE = Path(__file__).with_name("kept_calls.cpp")


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    built = tmp_path_factory.mktemp("kept") / "kept"
    subprocess.run(["g++", "-Wall", "-Wextra", "-Werror", "-g", "-O2", "-o", str(built), str(SOURCE)], check=True)
    return built


def studied(
    program: Path, which: str, folder: Path, restores: tuple[str, ...] = ("--restores", "2"), hotspot: str = ""
) -> HotspotReport:
    options = ("--hotspot", hotspot or which, *restores, "--candidates", "2")
    report = advise([program, which], *options, folder=folder)
    assert headline(report.hotspots[0]) in render(report)
    return report.hotspots[0]


@pytest.mark.slow
def test_calls_stay_calls_and_ways_not_taken_end(program: Path, tmp_path: Path) -> None:
    hotspot = studied(program, "step", tmp_path)
    assert not hotspot.not_lifted
    assert hotspot.identity is not None
    assert hotspot.identity.evidence == "verified"
    names = {call.function for call in hotspot.kept_calls}
    assert names == {"clock_gettime", "malloc", "free", "lrand48"}  # the virtual functions are inlined
    # growing the vector and throwing never happened
    assert hotspot.ended_ways
    assert all(way.reason for way in hotspot.ended_ways)
    assert {way.line for way in hotspot.ended_ways if way.file and way.file.endswith("kept_calls.cpp")}
    verified = [c for c in hotspot.candidates if c.evidence == "verified"]
    assert verified
    assert all(c.verification is not None and c.verification.calls == 3 for c in verified)
    assert any(c.speedup is not None for c in verified)


@pytest.mark.slow
def test_what_a_callee_touches_gets_no_other_layout(program: Path, tmp_path: Path) -> None:
    hotspot = studied(program, "behind", tmp_path, restores=())
    assert hotspot.identity is not None
    assert hotspot.identity.evidence == "verified"
    assert hotspot.candidates
    assert all(c.evidence == "rejected" for c in hotspot.candidates)
    assert hotspot.verdict.action != "change"
    assert hotspot.identity.ratio is not None
    assert hotspot.identity.ratio.restores == 2  # nothing is compared with it: a look is enough


@pytest.mark.slow
def test_a_callee_that_only_asks_whether_what_moves_is_large_is_noticed(program: Path, tmp_path: Path) -> None:
    """It did the same with the one byte that memory was overwritten with."""
    hotspot = studied(program, "compares", tmp_path, hotspot="behind")
    assert hotspot.identity is not None
    assert hotspot.identity.evidence == "verified"
    assert hotspot.candidates
    assert all(c.evidence == "rejected" for c in hotspot.candidates)


@pytest.mark.slow
@pytest.mark.parametrize(("which", "function"), [("beside", "behind"), ("beside_directly", "beside_directly")])
def test_a_callee_may_use_members_that_keep_their_places(program: Path, tmp_path: Path, which: str, function: str) -> None:
    """All layouts were rejected, as the function that is called reads another member; where it is called directly, none was
    tried ("the reference is made by a call that stays a call")."""
    hotspot = studied(program, which, tmp_path, hotspot=function)
    assert hotspot.kept_calls
    verified = [c for c in hotspot.candidates if c.evidence == "verified"]
    assert verified
    assert any(c.speedup is not None for c in verified)


@pytest.mark.slow
def test_functions_that_are_called_through_pointers_are_inlined(program: Path, tmp_path: Path) -> None:
    """Their accesses were those of calls that stay calls: no layout of what they use was measured."""
    hotspot = studied(program, "in_turn", tmp_path)
    assert not hotspot.kept_calls
    assert any(way.reason == ANOTHER_CALLEE for way in hotspot.ended_ways)
    verified = [c for c in hotspot.candidates if c.evidence == "verified"]
    assert verified
    assert all(c.verification is not None and c.verification.calls == 3 for c in verified)
    assert any(c.speedup is not None for c in verified)


@pytest.mark.slow
def test_what_acts_outside_of_the_process_is_named(program: Path, tmp_path: Path) -> None:
    hotspot = studied(program, "prints", tmp_path)
    (stopped,) = hotspot.not_lifted
    assert "fprintf" in stopped.reason
    assert "outside of the process" in stopped.reason
    assert all(c.speedup is None for c in hotspot.candidates)
