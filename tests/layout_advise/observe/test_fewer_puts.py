"""Words that the program writes between calls and that these have nothing to do with need not be put back."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from layout_advise.errors import SnapshotError
from layout_advise.observe.case import are_enough
from layout_advise.observe.policy import OBSERVE
from layout_advise.tracer.process.stopped_program import Range
from layout_advise.tracer.snapshot.agent_process import AgentProcess
from layout_advise.tracer.snapshot.between import Puts

TOUCHED = [Range(0x1000, 0x1040)]


class Program:
    """Calls that add up what stands at ``reads``, into what they touch."""

    def __init__(self, reads: int, fails: bool = False) -> None:
        self.reads, self.fails = reads, fails
        self.words: dict[int, int] = {}
        self.forks = 0

    def fork(self) -> Program:
        self.forks += 1
        return Program(self.reads, self.fails)

    def put(self, counts: bytes, puts: bytes) -> None:
        self.words = {int(at): int(value) for at, _, value in np.frombuffer(puts, np.uint64).reshape(-1, 3)}

    def run(self, variant: int) -> Any:
        assert variant == 0
        if self.fails:
            raise SnapshotError("the calls", "do not end")
        return SimpleNamespace(returned=(bytes(16),))

    def read(self, start: int, size: int) -> bytes:
        return (self.words.get(0x1000, 0) + self.words.get(self.reads, 0)).to_bytes(size, "little")

    def __enter__(self) -> Program:
        return self

    def __exit__(self, *_: object) -> None: ...


def puts(*places: int) -> Puts:
    words = np.array([[at, 0, 7] for at in places], np.uint64).reshape(-1, 3)
    return Puts(np.array([len(places)], np.uint64), words)


ALL = puts(0x1000, 0x8000, 0x8008)


@pytest.mark.parametrize(
    ("program", "enough"), [(Program(0x2000), True), (Program(0x8008), False), (Program(0x2000, fails=True), False)]
)
def test_they_are_left_out_where_the_calls_do_the_same_without(program: Program, enough: bool) -> None:
    fewer = ALL.within(TOUCHED)
    assert len(fewer) == 1
    assert are_enough(fewer, ALL, TOUCHED, cast(AgentProcess, program)) == enough


def test_nothing_is_run_where_there_is_nothing_to_leave_out_or_too_much_to_compare() -> None:
    program = Program(0x2000)
    assert not are_enough(ALL, ALL, TOUCHED, cast(AgentProcess, program))
    much = [Range(0x1000, 0x1000 + OBSERVE.most_compared + 8)]
    assert not are_enough(ALL.within(TOUCHED), ALL, much, cast(AgentProcess, program))
    assert program.forks == 0
