"""Calls of a region as a mock-up in the running program, against what the program does by itself."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from layout_advise.errors import ProgramError
from layout_advise.tracer.live.orders import LiveCalls, LiveTask
from layout_advise.tracer.live.outcome import CONVERTED, FAULTED, MOCKUP, ORIGINAL, PASSED, STOPPED, LiveRun
from layout_advise.tracer.live.run import run_live
from layout_advise.tracer.process.agent import SOURCES
from layout_advise.tracer.process.stopped_program import Range
from layout_advise.tracer.snapshot.park import park
from tests.support.tracing.parked_programs import entry_of

HERE = Path(__file__).parent
FIRST, CALLS = 3, 60
FOLLOWING = CALLS - FIRST + 1
RDI, RSI, RDX, RSP = 7, 6, 2, 4


@dataclass(frozen=True)
class Trial:
    """The program with one argument, and the orders for its structure."""

    program: Path
    words: tuple[str, ...]
    task: LiveTask
    stdin: Path | None = None

    def run(self, calls: LiveCalls, seed: int = 0, quick: bool = False) -> LiveRun:
        command = [str(self.program), *self.words]
        return run_live(
            command, entry_of(self.program), self.task, calls, seed=seed, quick=quick, stdin_path=self.stdin, timeout=60
        )

    def alone(self) -> subprocess.CompletedProcess[bytes]:
        """The program without the agent."""
        source = self.stdin.read_bytes() if self.stdin else b""
        return subprocess.run([self.program, *self.words], capture_output=True, input=source)

    def same(self, run: LiveRun) -> bool:
        """Whether it did what the program does alone."""
        alone = self.alone()
        return (run.returncode, run.stdout, run.stderr) == (alone.returncode, alone.stdout, alone.stderr)


Build = Callable[..., Trial]


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> dict[bool, Path]:
    folder = tmp_path_factory.mktemp("live")
    for writes in (False, True):
        flags = ["-DWRITES"] if writes else []
        subprocess.run(
            ["gcc", "-O2", "-g", *flags, "-o", folder / f"p{writes:d}", HERE / "live_program.c", "-pthread"], check=True
        )
    return {writes: folder / f"p{writes:d}" for writes in (False, True)}


@pytest.fixture
def trial(programs: dict[bool, Path], tmp_path: Path) -> Build:
    def build(
        *words: str, writes: bool = False, stdin: Path | None = None, trap: int = -1, wrong: int = 0, far: int = -1
    ) -> Trial:
        program = programs[writes]
        with park([str(program), *words], entry_of(program), FIRST, timeout=60, stdin_path=stdin) as parked:
            known = parked.registers().gpr
            base, count = known[RDI], known[RDX]
            blocks = tuple(a for a in parked.allocations() if a.address == base)
        out = tmp_path / "mockup.so"
        given = [f"-DBASE={base:#x}", f"-DCOUNT={count}", f"-DTRAP={trap}", f"-DWRONG={wrong}", f"-DFAR={far}"]
        given += ["-DWRITES"] if writes else []
        source = HERE / "live_mockup.c"
        subprocess.run(["gcc", "-O2", "-shared", "-fPIC", f"-I{SOURCES}", *given, "-o", out, source], check=True)
        guarded = tuple((number, known[number], known[number]) for number in (RDI, RSI, RDX, RSP))
        task = LiveTask(out, FIRST, (Range(base, base + 32 * count),), blocks, guarded, writes=writes)
        return Trial(program, words, task, stdin)

    return build


def numbers(run: LiveRun, role: int) -> list[int]:
    """The calls that have this role."""
    return [FIRST + int(k) for k in np.flatnonzero(run.roles & np.uint64(role))]


def copied(run: LiveRun) -> list[int]:
    """The calls before or after which copying took time, less than the whole run did."""
    assert run.copying is not None
    assert (run.copying >= 0).all()
    assert run.copying.sum() < 1e9 * run.seconds
    return [FIRST + int(k) for k in np.flatnonzero(run.copying)]


def written(every: int) -> Sequence[int]:
    """The calls after which the program wrote, from the first of the trial on."""
    return [k for k in range(FIRST, CALLS) if k % every == 0]


def test_the_time_for_mockups_may_be_over_before_the_program_ends(trial: Build) -> None:
    one = trial(writes=True)
    run = replace(one, task=replace(one.task, limit_s=1e-9)).run(LiveCalls.ALL)
    assert run.error == ""
    assert (run.mockups, run.ended) == (1, FIRST + 1)
    assert numbers(run, MOCKUP) == [FIRST]
    assert one.same(run)
    assert one.run(LiveCalls.ALL).ended == 0


def test_all_calls_run_as_the_mockup_and_the_program_does_the_same(trial: Build) -> None:
    one = trial()
    run = one.run(LiveCalls.ALL)
    assert one.same(run)
    assert (run.calls, run.mockups, run.conversions, run.passed) == (FOLLOWING, FOLLOWING, 1, 0)
    assert numbers(run, MOCKUP) == list(range(FIRST, CALLS + 1))
    assert (run.times > 0).all()
    assert not run.error
    assert not run.inside


def test_short_calls_have_times_where_all_are_the_mockup(trial: Build) -> None:
    """No call of the original tells what a tick of the time stamp counter is then."""
    run = trial().run(LiveCalls.ALL, quick=True)
    assert (run.times > 0).all()
    assert run.times.sum() < 1e9 * run.seconds


def test_a_loaded_mockup_makes_no_call(trial: Build) -> None:
    one = trial(wrong=1)
    run = one.run(LiveCalls.LOADED)
    assert one.same(run)
    assert (run.calls, run.mockups, run.conversions, run.passed) == (FOLLOWING, 0, 1, 0)
    assert numbers(run, ORIGINAL) == list(range(FIRST, CALLS + 1))
    assert not run.error


@pytest.mark.parametrize("start", [0x1000, 0x1008], ids=["pages", "less"])
def test_memory_that_is_not_there_at_the_first_call_is_told(trial: Build, start: int) -> None:
    one = trial()
    one = replace(one, task=replace(one.task, ranges=(*one.task.ranges, Range(start, start + (64 << 20)))))
    run = one.run(LiveCalls.ALL)
    assert one.same(run)
    assert run.error == "the memory of a structure is not there yet at the first of the calls"
    assert run.mockups == 0


def test_a_mockup_that_does_something_else_is_seen(trial: Build) -> None:
    one = trial(wrong=1)
    run = one.run(LiveCalls.ALL)
    assert run.mockups == FOLLOWING
    assert not one.same(run)


def test_opposite_runs_have_each_call_in_both_ways(trial: Build) -> None:
    one = trial()
    for seed in (1, 2):
        first, second = one.run(LiveCalls.ONE, seed), one.run(LiveCalls.OTHER, seed)
        assert one.same(first)
        assert one.same(second)
        assert numbers(first, MOCKUP) == numbers(second, ORIGINAL)
        assert numbers(first, ORIGINAL) == numbers(second, MOCKUP)
        assert abs(first.mockups - second.mockups) <= 1
        assert (first.times > 0).all()
    assert len({tuple(numbers(one.run(LiveCalls.ONE, seed), MOCKUP)) for seed in (1, 2, 3)}) == 3


def test_ordinary_runs_time_the_original(trial: Build) -> None:
    one = trial()
    run = one.run(LiveCalls.NONE)
    assert one.same(run)
    assert (run.calls, run.mockups, run.conversions) == (FOLLOWING, 0, 0)
    assert copied(run) == []
    assert numbers(run, ORIGINAL) == list(range(FIRST, CALLS + 1))


@pytest.mark.parametrize("what", ["writer", "read", "small"])
def test_what_the_program_writes_is_converted_anew(trial: Build, what: str) -> None:
    """Whole pages written by the program or by a system call, and the edges of pages that hold other things."""
    one = trial(what)
    run = one.run(LiveCalls.ALL)
    assert one.same(run)
    assert run.mockups == FOLLOWING
    assert numbers(run, CONVERTED) == [k + 1 for k in written(7)]
    assert run.conversions == 1 + len(written(7))
    assert copied(run) == numbers(run, CONVERTED)
    assert one.same(one.run(LiveCalls.ONE, 1))


@pytest.mark.parametrize("what", ["", "writer"])
def test_what_the_mockup_writes_is_there_for_everybody(trial: Build, what: str) -> None:
    one = trial(*filter(None, [what]), writes=True)
    run = one.run(LiveCalls.ALL)
    assert one.same(run)
    assert run.mockups == FOLLOWING
    assert numbers(run, CONVERTED) == ([k + 1 for k in written(7)] if what else [])
    assert copied(run) == list(range(FIRST, CALLS + 1))  # back after each call
    for seed in (1, 2):
        assert one.same(one.run(LiveCalls.ONE, seed))
        assert one.same(one.run(LiveCalls.OTHER, seed))


def test_calls_with_other_registers_are_the_originals(trial: Build) -> None:
    one = trial("deep")
    run = one.run(LiveCalls.ALL)
    deep = [k for k in range(FIRST, CALLS + 1) if k % 3 == 0]
    # the program is stopped at a deeper call, so that it is the others that are not like it
    assert one.same(run)
    assert FIRST in deep
    assert numbers(run, MOCKUP) == deep
    assert run.passed == FOLLOWING - len(deep) == len(numbers(run, PASSED))


def test_registers_may_have_room(trial: Build) -> None:
    one = trial("deep")
    ((number, base, _), *others) = one.task.guarded
    assert (number, others[-1][0]) == (RDI, RSP)
    inside = ((number, base, one.task.ranges[0].end - 1), *others[:-1])
    run = replace(one, task=replace(one.task, guarded=inside)).run(LiveCalls.ALL)
    assert one.same(run)
    assert run.passed == 0
    elsewhere = replace(one, task=replace(one.task, guarded=(), outside=(RDI,)))
    assert elsewhere.run(LiveCalls.ALL).passed == FOLLOWING


def test_a_block_that_is_freed_ends_it(trial: Build) -> None:
    one = trial("move")
    run = one.run(LiveCalls.ALL)
    assert one.same(run)
    assert run.mockups == 30 - FIRST + 1
    assert one.task.blocks
    # the guard of the register that holds its address is passed by nothing but the block's own check
    loose = replace(one, task=replace(one.task, guarded=()))
    run = loose.run(LiveCalls.ALL)
    assert loose.same(run)
    assert run.mockups == 30 - FIRST + 1
    assert "freed" in run.error


def test_a_way_that_is_not_there_is_told_and_left_to_the_original(trial: Build) -> None:
    one = trial(trap=17)
    run = one.run(LiveCalls.ALL)
    assert run.returncode < 0
    assert run.inside == 17
    kept = replace(one, task=replace(one.task, left_out=(17,)))
    run = kept.run(LiveCalls.ALL)
    assert kept.same(run)
    assert run.passed == 1
    before = replace(one, task=replace(one.task, last=16))
    run = before.run(LiveCalls.ALL)
    assert before.same(run)
    assert run.mockups == 16 - FIRST + 1


@pytest.mark.parametrize(("writes", "what"), [(False, ""), (False, "writer"), (True, ""), (False, "fork")])
def test_a_survey_tells_the_calls_that_the_mockup_cannot_do(trial: Build, writes: bool, what: str) -> None:
    """One stops at a way that is not there, one reaches for memory that is not there: the program does not notice."""
    one = trial(*filter(None, [what]), writes=writes, trap=17, far=23)
    run = one.run(LiveCalls.SURVEY)
    assert one.same(run)
    assert numbers(run, STOPPED) == [17]
    assert numbers(run, FAULTED) == [23]
    assert numbers(run, MOCKUP) == [k for k in range(FIRST, CALLS + 1) if k not in (17, 23)]
    assert (run.surveyed, run.mockups) == (CALLS, 0)
    kept = replace(one, task=replace(one.task, left_out=(23, 17)))
    run = kept.run(LiveCalls.ALL)
    assert kept.same(run)
    assert numbers(run, PASSED) == [17, 23]
    assert kept.same(kept.run(LiveCalls.ONE, 1))
    assert kept.same(kept.run(LiveCalls.OTHER, 1))


def test_a_survey_ends_in_time(trial: Build) -> None:
    one = trial()
    run = replace(one, task=replace(one.task, survey_s=0.0)).run(LiveCalls.SURVEY)
    assert one.same(run)
    assert FIRST <= run.surveyed < CALLS


@pytest.mark.parametrize("what", ["early", "die"])
def test_a_program_that_ends_in_the_middle_ends_the_same_way(trial: Build, what: str) -> None:
    one = trial(what)
    run = one.run(LiveCalls.ALL)
    assert one.same(run)
    assert run.mockups == 20 - FIRST + 1
    assert not run.inside


def test_forked_processes_have_their_own_code(trial: Build) -> None:
    one = trial("fork")
    run = one.run(LiveCalls.ALL)
    assert one.same(run)
    assert run.mockups == FOLLOWING


def test_the_program_reads_its_input(trial: Build, tmp_path: Path) -> None:
    lines = tmp_path / "lines"
    lines.write_text("11\n22\n33\n")
    one = trial("input", stdin=lines)
    run = one.run(LiveCalls.ALL)
    assert one.same(run)
    assert numbers(run, CONVERTED) == [21, 41]


def test_threads_are_refused(trial: Build) -> None:
    one = trial("thread")
    run = one.run(LiveCalls.ALL)
    assert one.same(run)
    assert run.mockups == 0
    assert run.error == "the program has several threads"


def test_a_mockup_that_cannot_be_loaded_leaves_the_program_alone(trial: Build, tmp_path: Path) -> None:
    one = trial()
    gone = replace(one, task=replace(one.task, mockup=tmp_path / "gone.so"))
    run = gone.run(LiveCalls.ALL)
    assert gone.same(run)
    assert run.mockups == 0
    assert "gone.so" in run.error


def test_a_program_that_takes_too_long_is_ended(trial: Build) -> None:
    one = trial()
    with pytest.raises(ProgramError, match=r"the program took longer than 0\.3 s while a layout was tried in it"):
        run_live(["/bin/sleep", "60"], entry_of(one.program), one.task, LiveCalls.ALL, timeout=0.3)
    assert not list(Path("/dev/shm").glob(f"layout-advise-{os.getpid()}-*"))


def test_orders_have_room_for_so_much(trial: Build) -> None:
    one = trial()
    with pytest.raises(ValueError, match="too many"):
        replace(one.task, left_out=tuple(range(4097))).packed(LiveCalls.ALL, 0)
