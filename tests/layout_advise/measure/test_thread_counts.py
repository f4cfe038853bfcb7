"""A parallel region by number of threads: what is tried, compared, refused and said."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from layout_advise.errors import SnapshotError
from layout_advise.measure.policy import MEASURE
from layout_advise.measure.thread_counts import Runner, WithThreads, by_threads, numbers, scaling, time_of
from layout_advise.mockup.timing.plan import Memory, TimingPlan
from layout_advise.mockup.timing.timings import Timings
from layout_advise.mockup.timing.variants import ORIGINAL
from layout_advise.observe.observe import observed
from layout_advise.reports.model import contract
from layout_advise.reports.model.candidate import Interval
from layout_advise.reports.model.threads import ByThreads, ThreadCount, Time
from layout_advise.reports.pages import html, tables, terminal
from layout_advise.tracer.backends.clone.record_team import trace_region
from layout_advise.tracer.snapshot.snapshots import CriuSnapshots
from layout_advise.verify.copies import in_copies
from tests.support.openmp.road import build_bodies
from tests.support.sample_report import report
from tests.support.tracing.openmp_traces import parked_team
from tests.support.variants import variant


@given(st.integers(1, 300), st.integers(1, 300))
def test_numbers_are_those_of_the_cores(cores: int, own: int) -> None:
    found = numbers(cores, own)
    assert list(found) == sorted(set(found))
    assert (found[0], found[-1]) == (1, cores)
    assert cores > MEASURE.every_thread_count or len(found) == cores
    assert own > cores or own in found


def timings(*times: float) -> Timings:
    return Timings(steady=[{ORIGINAL: [t] * 5} for t in times])


def test_times_and_scaling_have_intervals_over_processes() -> None:
    one, two = timings(100.0, 104.0, 101.0, 100.0, 103.0), timings(50.0, 51.0, 52.0, 50.0, 50.0)
    found = time_of(one, ORIGINAL, "steady")
    assert found is not None
    assert found.lo <= found.ns <= found.hi
    assert 100.0 <= found.lo < found.hi <= 104.0
    assert found.restores == 5
    ratio = scaling(one, two, "steady")
    assert ratio is not None
    assert ratio.median == pytest.approx(2.0)
    assert ratio.restores == 5
    assert time_of(one, variant("c1"), "steady") is None
    assert scaling(one, Timings(), "steady") is None


def test_the_region_runs_with_other_numbers_of_threads(tmp_path: Path) -> None:
    with parked_team(build_bodies(tmp_path), 3, 2, "move") as (process, binary, function):
        region = binary.region(function, process.load_base)
        with process.fork() as copy:
            seen = observed(process, binary, region, trace_region(process, copy, region, 3))
        assert isinstance(process.copies, CriuSnapshots)
        assert seen.team is not None
        for count in (1, 3):
            with in_copies(process, (), None, seen.team, count) as copies:
                assert copies.as_usual()
            with WithThreads(process.copies, count).restore() as other:
                other.prepare(0, seen.written, seen.touched)
                wall, own = other.members(0, 3)  # type: ignore[attr-defined]
                assert len(own) == count
                assert wall > 0
                assert min(own) > 0
        plan = TimingPlan(restores=1, rounds=1, calls=2, warm=0, cold_calls=0, clock="wall")
        memory = Memory(seen.written, seen.touched)
        found = by_threads(process, seen.team, process.copies, Runner((), None, None), memory, plan, "steady", 2)
    assert (found.own, found.candidate, [c.threads for c in found.counts]) == (2, None, [1, 2])
    assert [(c.reason, c.same_result, len(c.shares)) for c in found.counts] == [(None, True, 1), (None, True, 2)]
    assert all(c.original is not None and c.scaling is not None for c in found.counts)


def test_data_that_depends_on_the_number_of_threads_is_told_of(tmp_path: Path) -> None:
    with parked_team(build_bodies(tmp_path, "-DCOUNT"), 3, 2, "move") as (process, binary, function):
        region = binary.region(function, process.load_base)
        with process.fork() as copy:
            trace = trace_region(process, copy, region, 3)
        with in_copies(process, (), None, trace, 1) as copies:
            assert not copies.as_usual()


def test_what_the_runtime_does_not_give_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_THREAD_LIMIT", "2")
    with parked_team(build_bodies(tmp_path), 3, 2, "move") as (process, _, _), process.fork() as copy:
        refused = pytest.raises(SnapshotError, match="with 4 threads: the program's runtime gives 2")
        with refused:
            copy.threads(4)


def shown() -> contract.Report:
    """A report of a region on two cores, run with two threads."""
    counts = (
        ThreadCount(
            1,
            None,
            True,
            Time(200e3, 199e3, 201e3, 5),
            Interval(1, 1, 1, 5),
            None,
            Time(100e3, 99e3, 101e3, 5),
            None,
            Interval(2.0, 1.9, 2.1, 5),
            shares=(0.98,),
        ),
        ThreadCount(2, None, True, Time(110e3, 109e3, 111e3, 5), Interval(1.82, 1.8, 1.85, 5), shares=(0.9, 0.7)),
        ThreadCount(3, "it leaves other bytes behind"),
    )
    sample = report()
    hotspot = msgspec.structs.replace(sample.hotspots[0], by_threads=ByThreads(2, "c1", "steady", counts))
    return msgspec.structs.replace(sample, hotspots=(hotspot,))


def test_the_table_is_in_both_reports() -> None:
    sample = shown()
    text, page = terminal.render(sample), html.render(sample)
    row = next(line for line in text.splitlines() if "1.82×" in line)
    assert row.split() == ["2*", "110", "µs", "[109,", "111]", "1.82×", "[1.80,", "1.85]", "–", "–", "70", "to", "90%"]
    assert "3 threads refused: it leaves other bytes behind" in text
    assert "By number of threads" in page
    assert page.count("<svg") > html.render(report()).count("<svg")
    assert "By number of threads" not in html.render(report())
    assert contract.decode(contract.encode(sample)) == sample


def test_where_no_scaling_is_claimed_the_report_says_why() -> None:
    hotspot = shown().hotspots[0]
    assert hotspot.by_threads is not None
    one = msgspec.structs.replace(
        hotspot.by_threads.counts[0], same_result=False, scaling=None, candidate_reason="it crashed"
    )
    changed = msgspec.structs.replace(hotspot.by_threads, counts=(one, *hotspot.by_threads.counts[1:]))
    notes = tables.by_threads_notes(msgspec.structs.replace(hotspot, by_threads=changed))
    assert "with 1 the region leaves other bytes than with 2" in notes[1]
    assert "c1 refused with 1 thread: it crashed" in notes
    assert tables.by_threads_notes(report().hotspots[0]) == []
