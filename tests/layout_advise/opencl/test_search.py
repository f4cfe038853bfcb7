"""The search uses the layouts that it may measure, never more, and none twice; times are made up."""

from __future__ import annotations

import numpy as np
import pytest

from layout_advise.opencl import search
from layout_advise.opencl.candidates import key, same_tile
from layout_advise.opencl.host.launch import BufferArgument, Launch
from layout_advise.opencl.measure.jobs import DeviceName, KernelJob, VariantOutcome
from layout_advise.opencl.measure.verify import Compared
from layout_advise.opencl.policy import OPENCL
from layout_advise.opencl.records import records_of
from layout_advise.opencl.search import DeviceSearch
from layout_advise.opencl.searched import Searched
from layout_advise.opencl.source.read import read_program
from tests.support import slower
from tests.support.opencl.kernels import forces_launch

SAME = Compared(100, 50, "")


def searched(
    monkeypatch: pytest.MonkeyPatch, wanted: tuple[int, ...], problem: str = "", events: float = 1.0, ran: float = 1.0
) -> Searched:
    """A search in which layouts that have the members ``wanted`` in one cluster by themselves are twice as fast by the time
    that the process ran, of which ``ran`` is seen here; by events and the host's clock all but the original take
    ``events`` of its time, where that is not 1."""

    def outcomes(job: KernelJob) -> list[VariantOutcome]:
        found = []
        for one in job.variants:
            fast = bool(one.layouts) and wanted in one.layouts[0].partition
            ns = 50.0 if fast else 100.0 + sum(t for layout in one.layouts for t in layout.tiles) / 1e3
            seen = 100.0 * events if one.layouts and events != 1 else ns
            found.append(VariantOutcome(seen, seen, ns * ran, problem if one.layouts else "", SAME))
        return found

    monkeypatch.setattr(search, "outcomes_apart", outcomes)
    monkeypatch.setattr(search, "over_processes", lambda job, processes, before=0: [outcomes(job) for _ in range(processes)])
    launch = forces_launch(64)
    program = read_program(launch.source)
    records = [one.graph for one in records_of(program, [launch]) if one.note is None]
    return DeviceSearch(program, [launch], records, DeviceName("p", "d"), "cpu", lambda _text: None).run(2)


def test_all_that_may_be_is_measured_and_nothing_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    found = searched(monkeypatch, (0, 1, 2, 6))
    assert len(found.tried) == OPENCL.most_measured
    assert len({key(one.variant.layouts) for one in found.tried}) == len(found.tried)


def test_a_layout_one_step_away_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    found = searched(monkeypatch, (3,))  # vx alone, which neither the graph nor an even cut proposes by itself
    assert found.best()[0].screened == 2
    assert (3,) in found.best()[0].variant.layouts[0].partition


def test_nothing_is_beside_what_is_not_verified(monkeypatch: pytest.MonkeyPatch) -> None:
    found = searched(monkeypatch, (3,), "does not build")
    assert not found.best()
    assert 0 < len(found.tried) < OPENCL.most_measured


def test_on_a_processor_its_own_time_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    found = searched(monkeypatch, (3,), events=1.3)  # other work stretches what is not the original
    assert found.clock == "cpu"
    best = found.best()[0]
    assert best.screened == 2
    assert best.speedup is not None
    assert best.wall is not None
    assert best.speedup.median == 2
    assert best.wall.median == pytest.approx(1 / 1.3)


def test_a_processor_elsewhere_goes_by_its_events(monkeypatch: pytest.MonkeyPatch) -> None:
    found = searched(monkeypatch, (3,), events=1.3, ran=0.01)
    assert found.clock == "device"
    assert found.best()[0].screened == pytest.approx(1 / 1.3)


PAIR = """typedef struct { int index; float weight; } entry;
__kernel void k(__global const entry *p, __global float *out) {
    const size_t i = get_global_id(0);
    out[i] = p[i].index * p[i].weight;
}
"""


def test_tiles_are_tried_though_a_calibration_says_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def outcomes(job: KernelJob) -> list[VariantOutcome]:
        return [VariantOutcome(100.0, 100.0, 100.0, "", SAME) for _ in job.variants]

    monkeypatch.setattr(search, "outcomes_apart", outcomes)
    monkeypatch.setattr(search, "over_processes", lambda job, processes, before=0: [outcomes(job)] * processes)
    data = np.zeros(8 * 1024, np.uint8), np.zeros(4 * 1024, np.uint8)
    launch = Launch(PAIR, "", "k", (BufferArgument(0), BufferArgument(1)), data, (1024,))
    program = read_program(PAIR)
    records = [one.graph for one in records_of(program, [launch])]
    none = DeviceSearch(program, [launch], records, DeviceName("p", "d"), "cpu", lambda _text: None, same_tile(1)).run(2)
    assert {one.variant.layouts[0].tiles for one in none.tried} == {(1, 1), (OPENCL.first_tiles,)}


@pytest.mark.parametrize(
    ("gain", "processes", "expected"), [(2.0, 5, 5), *slower((1.0, 5, 5)), (1.05, 5, 15), *slower((1.05, 2, 2))]
)
def test_open_answers_get_more_processes(
    monkeypatch: pytest.MonkeyPatch, gain: float, processes: int, expected: int
) -> None:
    """The finalists' gain changes by process by a hundredth."""
    made: list[int] = []

    def outcomes(job: KernelJob) -> list[VariantOutcome]:
        ns = 100.0 / gain * (1 + 0.01 * (len(made) % 3 - 1))
        return [VariantOutcome(t, t, t, "", SAME) for t in (ns if one.layouts else 100.0 for one in job.variants)]

    def over(job: KernelJob, processes: int, before: int = 0) -> list[list[VariantOutcome]]:
        assert before == len(made)
        rows = []
        for _ in range(processes):
            rows.append(outcomes(job))
            made.append(before)
        return rows

    monkeypatch.setattr(search, "outcomes_apart", outcomes)
    monkeypatch.setattr(search, "over_processes", over)
    launch = forces_launch(64)
    program = read_program(launch.source)
    records = [one.graph for one in records_of(program, [launch]) if one.note is None]
    found = DeviceSearch(program, [launch], records, DeviceName("p", "d"), "cpu", lambda _text: None).run(processes)
    assert len(made) == expected
    assert {one.speedup.restores for one in found.tried if one.speedup is not None} == {expected}
