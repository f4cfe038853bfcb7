"""Times in the running program that were taken while the processor was slowed tell nothing of the program."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from layout_advise.choose import batches
from layout_advise.choose.batches import CallBatch, TimedRun, undisturbed_each
from layout_advise.choose.call_kinds import Kind
from layout_advise.choose.calls import ChosenCall
from layout_advise.choose.probed_calls import IN_SITU_PROCESSES, PATIENCE_NS
from layout_advise.config import Settings
from layout_advise.observe import find_kinds
from layout_advise.observe.case import Case
from layout_advise.tracer.snapshot.recorded_calls import RECORDED, Calls

CALM, SLOWED = 4000, 7000
SETTINGS = Settings(("./app",), Path("run"))


class Program:
    """A program whose processes find the processor in these states, one after the other, and then slowed: a call takes
    76 ns, or 112."""

    def __init__(self, *canaries: int) -> None:
        self.canaries = list(canaries)
        self.waited: list[tuple[int, int]] = []

    def probe(self, *_: Any, timed: int, calm: Any, **__: Any) -> Any:
        self.waited.append((calm.ticks, calm.patience_ns))
        canary = self.canaries.pop(0) if self.canaries else SLOWED
        ns = 76.0 if canary == CALM else 112.0
        one = SimpleNamespace(cpu_ns=ns, wall_ns=ns, canary=canary)
        return SimpleNamespace(times=(one,) * timed, quick_ns=(ns,) * timed, canary=canary)


def batch(*canaries: int) -> CallBatch:
    runs = tuple(TimedRun((76.0 if one == CALM else 112.0,) * 4, one) for one in canaries)
    return CallBatch(4, Calls(1, bytes(12 * RECORDED)), undisturbed_each(runs), runs)


def profiled() -> Any:
    return SimpleNamespace(entry=None, threaded=False)


def test_processes_that_were_slowed_do_not_count_where_others_were_not() -> None:
    assert batch(SLOWED, CALM, SLOWED, CALM).each_ns == (76.0,) * 4
    assert batch(SLOWED, SLOWED, SLOWED).each_ns == (112.0,) * 4
    known = [TimedRun((112.0,), SLOWED), TimedRun((76.0,), CALM)]
    assert undisturbed_each(known, CALM)[0] > 76.0  # one alone decides nothing


def test_batches_are_timed_again_where_the_processor_is_as_fast_as_for_the_snapshot(monkeypatch: pytest.MonkeyPatch) -> None:
    program = Program(SLOWED, CALM, SLOWED, CALM)
    monkeypatch.setattr(batches, "probe", program.probe)
    assert batches.look_again(SETTINGS, profiled(), None, batch(SLOWED, SLOWED, SLOWED), CALM) == 4 * 76.0
    assert len(program.waited) == IN_SITU_PROCESSES[1]
    assert all(CALM <= ticks < SLOWED and ns == PATIENCE_NS for ticks, ns in program.waited)


def test_the_first_process_of_a_batch_has_nothing_to_wait_for(monkeypatch: pytest.MonkeyPatch) -> None:
    program = Program(CALM, SLOWED, CALM)
    monkeypatch.setattr(batches, "probe", program.probe)
    runs = batches.in_situ_runs(SETTINGS, profiled(), None, 1, 4)
    assert undisturbed_each(runs) == (76.0,) * 4
    assert program.waited[0][0] == 0
    assert all(CALM <= ticks < SLOWED for ticks, _ in program.waited[1:])


@pytest.mark.parametrize(("canary", "ns"), [(CALM, 76.0), (0, 112.0)])
def test_kinds_of_calls_are_timed_again_likewise(monkeypatch: pytest.MonkeyPatch, canary: int, ns: float) -> None:
    program = Program(CALM, CALM) if canary else Program()
    monkeypatch.setattr(find_kinds, "probe", program.probe)
    first = SimpleNamespace(cpu_ns=112.0, wall_ns=112.0, canary=SLOWED)
    kind = Kind(3, 1.0, 2, (2, 4), "", 112.0)
    case = SimpleNamespace(
        settings=SETTINGS, profiled=profiled(), probe=SimpleNamespace(times=(first,) * 4, calls=4), stdin=None, batch=None,
        kinds=(kind,), chosen=ChosenCall(2, 4, 112.0, 0.0),
    )  # fmt: skip
    assert find_kinds.look_again(cast(Case, case), canary) == ns
    assert {ticks >= CALM for ticks, _ in program.waited} == {True}
