"""Mock-ups are examined a few at a time."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import cast

import pytest

from layout_advise.tracer.process.stopped_program import StoppedProgram
from layout_advise.tracer.trace.trace import Mapping
from layout_advise.verify.verify import MOST_COPIED, Finding, Subject, _at_once
from tests.support.variants import variant

SUBJECTS = [Subject(variant(f"c{k}"), Path(f"c{k}.so"), None, (), None) for k in range(9)]
WAIT = 60


class Program:
    def __init__(self, size: int = 1 << 20) -> None:
        self.size = size
        self.ended = threading.Event()

    def mappings(self) -> tuple[Mapping, ...]:
        return (Mapping(0, self.size, "rw-p", 0, ""), Mapping(1 << 40, (1 << 40) + 2 * MOST_COPIED, "r--p", 0, "file"))

    def close_forks(self) -> None:
        self.ended.set()


def as_program(program: Program) -> StoppedProgram:
    return cast(StoppedProgram, program)


def test_findings_are_in_order_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: {0, 1, 2})
    second = threading.Event()

    def examine(subject: Subject) -> Finding:
        if str(subject.variant) == "c0":
            assert second.wait(WAIT)  # the first is done after the second
        if str(subject.variant) == "c1":
            second.set()
        return Finding(str(subject.variant))

    seen: list[tuple[int, int]] = []
    found = _at_once(as_program(Program()), examine, SUBJECTS, lambda done, total: seen.append((done, total)))
    assert [f.reason for f in found] == [str(s.variant) for s in SUBJECTS]
    assert seen == [(k + 1, 9) for k in range(9)]


def test_large_programs_are_not_copied_several_times(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: {0, 1, 2})
    running, most = 0, 0

    def examine(subject: Subject) -> Finding:
        nonlocal running, most
        running += 1
        most = max(most, running)
        threading.Event().wait(0.005)
        running -= 1
        return Finding(None)

    _at_once(as_program(Program(MOST_COPIED + 1)), examine, SUBJECTS, lambda done, total: None)
    assert most == 1


def test_who_breaks_off_does_not_wait_for_a_hanging_mockup(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: {0, 1})
    program = Program()

    def examine(subject: Subject) -> Finding:
        if str(subject.variant) != "c0":
            assert program.ended.wait(WAIT), "nobody killed it"
        return Finding(None)

    def interrupted(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        _at_once(as_program(program), examine, SUBJECTS, interrupted)
    assert program.ended.is_set()
