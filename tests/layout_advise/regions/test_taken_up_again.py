"""A region whose study is taken up again: it has its seconds once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from layout_advise.config import Settings
from layout_advise.describe.studied import InBatches, LongCall, Studied
from layout_advise.observe.case import Case
from layout_advise.progress import Progress
from layout_advise.regions import one
from layout_advise.regions.run_seconds import RunTime
from layout_advise.rundir import RegionDir
from layout_advise.workspace import Workspace

NOTHING = cast("Any", None)
REPORT = cast("Any", SimpleNamespace(verdict=SimpleNamespace(reason="x")))


@pytest.mark.parametrize(
    ("retry", "took", "left"), [(LongCall(), 20.0, 40.0), (InBatches(), 20.0, 40.0), (LongCall(), 59.0, 7.5)]
)
def test_what_is_left_of_its_seconds(
    monkeypatch: pytest.MonkeyPatch, retry: LongCall | InBatches, took: float, left: float
) -> None:
    found: list[float | None] = []

    def study(case: Case) -> Studied:
        found.append(case.seconds)
        return Studied(REPORT, NOTHING, took=5.0)

    monkeypatch.setattr(one, "study", study)
    monkeypatch.setattr(one, "at_long_call", lambda case: case)
    monkeypatch.setattr(one, "in_batches", lambda case, studied: case)
    case = Case(Settings(("./app",), Path("run")), NOTHING, NOTHING, NOTHING, NOTHING, None, NOTHING)
    _, again = one.study_again(case, Studied(REPORT, NOTHING, retry=retry, took=took), RunTime())
    assert again is not None
    assert (found, again.took) == ([left], took + 5.0)
    one.study_again(replace(case, seconds=30.0), Studied(REPORT, NOTHING, retry=retry, took=took), RunTime())
    assert found[1] == max(30.0 - took, 7.5)


def test_no_study_is_taken_up_again_that_would_end_too_late(monkeypatch: pytest.MonkeyPatch) -> None:
    """metis: of four regions one had its answer, another was studied in the place of the next, and the run was stopped."""
    now = [0.0]

    def study(case: Case) -> Studied:
        now[0] += 60.0
        return Studied(REPORT, NOTHING, retry=InBatches(), took=5.0)

    monkeypatch.setattr("time.monotonic", lambda: now[0])
    monkeypatch.setattr(one, "study", study)
    monkeypatch.setattr(one, "in_batches", lambda case, studied: case)
    case = Case(Settings(("./app",), Path("run")), NOTHING, NOTHING, NOTHING, NOTHING, None, NOTHING)
    for until, ends in ((169.0, 60.0), (170.0, 120.0)):  # 55 s beside measuring, and 55 s are left for that
        now[0] = 0.0
        assert one.study_in_time(case, RunTime(until, until))[1] is not None
        assert now[0] == ends


@pytest.mark.parametrize(("entry_ns", "taken"), [(785.0, "chunk"), (40_000.0, "loop"), (None, "loop")])
def test_a_chunk_of_a_loop_is_taken_where_entries_of_the_loop_in_it_are_too_short(
    monkeypatch: pytest.MonkeyPatch, entry_ns: float | None, taken: str
) -> None:
    """prodigal's ``dprog``: called twice, and its inner loop 300,000 times for 785 ns."""

    def region(name: str, chunk: int, ns: float | None) -> Any:
        profiled = SimpleNamespace(name=name, share=0.5, nest=name, entry=SimpleNamespace(chunk=chunk))
        return profiled, SimpleNamespace(calls=9000), SimpleNamespace(in_situ_ns=ns)

    monkeypatch.setattr(one, "probe_calls", lambda *_: (SimpleNamespace(calls=2), None))
    monkeypatch.setattr(one, "find_loop", lambda *_: region("loop", 0, entry_ns))
    monkeypatch.setattr(one, "find_chunk", lambda *_: region("chunk", 1000, 1e7))
    run = SimpleNamespace(region=lambda name: name)
    start = one.RunContext(Settings(("./app",), Path("run")), NOTHING, None, cast("Any", run), Path(), Progress(quiet=True))
    assert one.watch(start, cast("Any", SimpleNamespace(name="dprog", nest=None))).profiled.name == taken


def test_a_shorter_chunk_of_the_same_loop_keeps_its_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """pykdtree's trace was cut twice, as the same chunk was taken again, and then had no folder to be written to."""
    asked: list[int] = []

    def region(chunk: int) -> Any:
        return SimpleNamespace(name="the loop in f", share=0.5, nest="loop", entry=SimpleNamespace(chunk=chunk))

    def find_chunk(*given: Any) -> Any:
        asked.append(given[4])
        return region(given[4]), SimpleNamespace(calls=9), SimpleNamespace(in_situ_ns=1e6)

    monkeypatch.setattr(one, "find_chunk", find_chunk)
    monkeypatch.setattr(one, "loop_of", lambda case, least: None)
    folder = RegionDir(tmp_path / "the-loop-in-f")
    monkeypatch.setattr(RegionDir, "beside", lambda self, name: folder)
    folder.mockups.mkdir(parents=True)
    space = Workspace(folder, tmp_path, Progress(quiet=True))
    case = Case(Settings(("./app",), tmp_path), NOTHING, region(8000), NOTHING, NOTHING, None, space)
    smaller = one.with_fewer_accesses(replace(case, probe=cast("Any", SimpleNamespace(calls=9)), until=240.0))
    assert smaller is not None
    assert smaller.until == 240.0  # the end of the run is that of what is studied in its place, too (lz4)
    assert smaller.profiled.entry.chunk == asked[0] < 8000
    assert folder.mockups.exists()
