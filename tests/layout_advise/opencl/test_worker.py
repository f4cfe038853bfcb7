"""The order in which variants are prepared, run and told, with a session that only notes it."""

from __future__ import annotations

from typing import Any

import pytest

from layout_advise.errors import SourceError
from layout_advise.opencl.host.variants import original
from layout_advise.opencl.measure import worker
from layout_advise.opencl.measure.jobs import DeviceName, KernelJob
from layout_advise.opencl.measure.worker import carried_out, in_turn
from tests.support.opencl.kernels import device, forces_launch


def test_another_one_is_first_in_each_turn() -> None:
    assert [in_turn([0, 1, 2], turn) for turn in range(4)] == [[0, 1, 2], [1, 2, 0], [2, 0, 1], [0, 1, 2]]
    assert in_turn([], 3) == []


@pytest.mark.parametrize("turn", [0, 1, 5])
def test_all_buffers_are_made_before_anything_runs(monkeypatch: pytest.MonkeyPatch, turn: int) -> None:
    device()
    done: list[tuple[str, Any]] = []
    variants = tuple(original([forces_launch(64)]) for _ in range(3))
    number = {id(one): k for k, one in enumerate(variants)}

    def prepared(_session: object, variant: object) -> list[Any]:
        done.append(("made", number[id(variant)]))
        if number[id(variant)] == 1:
            raise SourceError("k.cl does not build", "it is the second", "")
        return [number[id(variant)]]

    def first_calls(_session: object, made: list[Any]) -> list[tuple[Any, ...]]:
        done.append(("run", made[0]))
        return [tuple(forces_launch(64).buffers)]

    monkeypatch.setattr(worker, "DeviceSession", lambda _device: None)
    monkeypatch.setattr(DeviceName, "find", lambda _self: None)
    monkeypatch.setattr(worker, "_prepared", prepared)
    monkeypatch.setattr(worker, "_first_calls", first_calls)
    monkeypatch.setattr(worker, "_timed", lambda _session, _job, _ready: {})
    monkeypatch.setattr(worker, "_with_times", lambda _session, _job, _number, outcome, _calls: outcome)
    outcomes = carried_out(KernelJob(DeviceName("p", "d"), variants, 0.0, turn))
    assert done == [*(("made", k) for k in in_turn(range(3), turn)), ("run", 0), ("run", 2)]
    assert [bool(one.problem) for one in outcomes] == [False, True, False]
    assert "it is the second" in outcomes[1].problem
