"""Mock-ups are examined a few at a time, and what they left decides."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest

from layout_advise.errors import SnapshotError
from layout_advise.tracer.process.stopped_program import POISON, StoppedProgram
from layout_advise.tracer.snapshot.compare import Comparison
from layout_advise.tracer.trace.trace import Mapping
from layout_advise.verify import verify as flow
from layout_advise.verify.forks import ForkRunner, forks_at_once
from layout_advise.verify.order_dependent_sums import SharedSum
from layout_advise.verify.policy import VERIFY
from layout_advise.verify.verify import (
    NOT_TAKEN,
    NOTHING_CHANGED,
    TOUCHED,
    CallRunner,
    Finding,
    Subject,
    how_it_failed,
    verify,
)
from tests.support.variants import variant

SUBJECTS = [Subject(variant(f"c{k}"), Path(f"c{k}.so"), None, (), None) for k in range(9)]
WAIT = 60


class Program:
    def __init__(self, size: int = 1 << 20) -> None:
        self.size = size
        self.ended = threading.Event()

    def mappings(self) -> tuple[Mapping, ...]:
        return (
            Mapping(0, self.size, "rw-p", 0, ""),
            Mapping(1 << 40, (1 << 40) + 2 * VERIFY.most_copied, "r--p", 0, "file"),
        )

    def close_forks(self) -> None:
        self.ended.set()

    def fork(self) -> Program:
        return self

    def run(self, number: int, forbidden: object, poison: int) -> None:
        assert (number, forbidden, poison) == (1, (), POISON)

    def read(self, address: int, size: int) -> bytes:
        return bytes([address] + [0] * (size - 1))

    def __enter__(self) -> Program:
        return self

    def __exit__(self, *_: object) -> None: ...


def runner(program: Program, changed: int = 1, sums: tuple[SharedSum, ...] = (), rounding: int = 0) -> CallRunner:
    parked = cast(StoppedProgram, program)
    original = cast(StoppedProgram, Original())
    at_once = forks_at_once(parked)
    numbers = dict.fromkeys((s.variant for s in SUBJECTS), 1)
    return ForkRunner(
        program=parked,
        before=parked,
        original=original,
        apart=(),
        changed=changed,
        lifted=None,
        traces=(),
        sums=sums,
        rounding=rounding,
        side_by_side=at_once,
        numbers=numbers,
    )


class Original(Program):
    def read(self, address: int, size: int) -> bytes:
        return bytes(size)


def examined_by(monkeypatch: pytest.MonkeyPatch, examine: Callable[[Subject], Finding]) -> None:
    monkeypatch.setattr(flow, "_compared", lambda runner, subject, poison: examine(subject))


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
    examined_by(monkeypatch, examine)
    found = verify(runner(Program()), SUBJECTS, progress=lambda done, total: seen.append((done, total)))
    assert [(v, f.reason) for v, f in found.items()] == [(s.variant, str(s.variant)) for s in SUBJECTS]
    assert seen == [(k + 1, 9) for k in range(9)]


def test_no_comparison_is_begun_when_the_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    examined_by(monkeypatch, lambda subject: Finding(None))
    found = list(verify(runner(Program()), SUBJECTS, seconds=-1.0).values())
    assert found[0] == Finding(None)  # the unchanged layout, without which nothing counts
    assert all(finding.reason is not None and "not compared" in finding.reason for finding in found[1:])


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

    examined_by(monkeypatch, examine)
    verify(runner(Program(VERIFY.most_copied + 1)), SUBJECTS)
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

    examined_by(monkeypatch, examine)
    with pytest.raises(KeyboardInterrupt):
        verify(runner(program), SUBJECTS, progress=interrupted)
    assert program.ended.is_set()


SUMS = (SharedSum(3, 8),)
FAR = "a sum of all threads is 3 units of the last place from the original's, more than rounding explains"


@pytest.mark.parametrize(
    ("differences", "changed", "sums", "rounding", "expected"),
    [
        ((), 5, (), 0, Finding(None, 64, 5)),
        (((0x10, 1, 2),), 5, (), 0, Finding("the written bytes differ, first at 0x10", 64, 5)),
        ((), 5, SUMS, 2, Finding(FAR, 64, 5)),
        ((), 5, SUMS, 3, Finding(None, 64, 5, 3)),
        ((), 0, (), 0, Finding(NOTHING_CHANGED, 64, 0)),
    ],
)
def test_what_a_mockup_left_decides(
    monkeypatch: pytest.MonkeyPatch,
    differences: tuple[tuple[int, int, int], ...],
    changed: int,
    sums: tuple[SharedSum, ...],
    rounding: int,
    expected: Finding,
) -> None:
    memory = Comparison(not differences, 64, 0, differences)
    monkeypatch.setattr(flow, "compare", lambda *ranges, **words: memory)
    found = verify(runner(Program(), changed, sums, rounding), SUBJECTS[:1])
    assert found == {SUBJECTS[0].variant: expected}


@pytest.mark.parametrize(
    ("signal", "calls", "why"),
    [
        ("SIGSEGV", True, f"the program died: killed by SIGSEGV{TOUCHED}"),
        ("SIGSEGV", False, "the program died: killed by SIGSEGV"),
        ("SIGFPE", True, "the program died: killed by SIGFPE"),
        ("SIGILL", True, NOT_TAKEN),
    ],
)
def test_a_mock_up_that_died_may_have_called_what_uses_the_old_places(signal: str, calls: bool, why: str) -> None:
    """lame: a function behind a pointer reads the table that was to be moved."""
    assert how_it_failed(SnapshotError("the program died", f"killed by {signal}"), calls=calls) == why
