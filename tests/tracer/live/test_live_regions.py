"""Calls of two regions over one array as mock-ups, in one start of the program, against what it does by itself."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from layout_advise.errors import SnapshotError
from layout_advise.tracer.live.orders import LiveCalls, LiveTask, RegionTask, why_not_together
from layout_advise.tracer.live.outcome import CONVERTED, MOCKUP, ORIGINAL, PASSED, LiveRun
from layout_advise.tracer.live.run import run_live_regions
from layout_advise.tracer.process.agent import SOURCES
from layout_advise.tracer.process.channel import further_region
from layout_advise.tracer.process.patching import Entry, Outlined
from layout_advise.tracer.process.stopped_program import Range
from layout_advise.tracer.snapshot.park import park
from tests.support.tracing.parked_programs import entry_of

HERE = Path(__file__).parent
FIRST, CALLS = 3, 40
FOLLOWING = CALLS - FIRST + 1
RDI, RSI, RSP = 7, 6, 4
PUSH, PULL, SWEEP, AROUND = "push", "pull", "sweep", "around"


@dataclass(frozen=True)
class Trial:
    """The program with one argument, and the orders for each of its regions."""

    program: Path
    words: tuple[str, ...]
    regions: tuple[RegionTask, ...]

    def run(self) -> tuple[LiveRun, ...]:
        return run_live_regions([str(self.program), *self.words], self.regions, timeout=60)

    def with_calls(self, *calls: LiveCalls) -> Trial:
        return replace(self, regions=tuple(replace(r, calls=c) for r, c in zip(self.regions, calls, strict=True)))

    def same(self, run: LiveRun) -> bool:
        """Whether it did what the program does alone."""
        alone = subprocess.run([self.program, *self.words], capture_output=True)
        return (run.returncode, run.stdout, run.stderr) == (alone.returncode, alone.stdout, alone.stderr)


Build = Callable[..., Trial]


def loop_of(program: Path) -> Entry:
    """The loop in ``sweep``, which begins behind two instructions and is left to the fourth from the end."""
    whole = entry_of(program, SWEEP)
    start, end = (whole.code.index(bytes.fromhex(code)) for code in ("4889fb31d2", "488d041a"))
    out = Entry(program, whole.address + end, whole.code[end:], "sweep_out")
    return Entry(program, whole.address + start, whole.code[start:], SWEEP, exits=(out,))


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("two") / "two"
    subprocess.run(["gcc", "-O2", "-g", "-o", out, HERE / "two_program.c"], check=True)
    return out


@pytest.fixture
def trial(program: Path, tmp_path: Path) -> Build:
    def task(name: str, words: Sequence[str], flags: Sequence[str]) -> RegionTask:
        entry = loop_of(program) if name == SWEEP else entry_of(program, name)
        with park([str(program), *words], entry, FIRST, timeout=60) as parked:
            known, load_base = parked.registers().gpr, parked.load_base
            blocks = tuple(a for a in parked.allocations() if a.address == known[RDI])
        base, count = known[RDI], known[RSI]
        at = load_base + (entry.exits[0] if entry.exits else entry_of(program, PUSH)).address
        own = {PUSH: [], PULL: ["-DPULL"], SWEEP: [f"-DSWEEP={at:#x}"], AROUND: [f"-DAROUND={at:#x}"]}[name]
        given = [f"-DBASE={base:#x}", f"-DCOUNT={count}", "-DTRAP=-1", "-DWRONG=0", *own, *flags]
        out = tmp_path / f"{name}{len(list(tmp_path.iterdir()))}.so"  # builds of one test beside each other
        source = HERE / "two_mockup.c"
        subprocess.run(["gcc", "-O2", "-shared", "-fPIC", f"-I{SOURCES}", *given, "-o", out, source], check=True)
        guarded = tuple((number, known[number], known[number]) for number in (RDI, RSI))
        alone = name == AROUND
        ranges = () if alone else (Range(base, base + 32 * count),)
        found = LiveTask(out, FIRST, ranges, blocks, guarded, writes=not alone, account=True)
        return RegionTask(entry, found, LiveCalls.ALL)

    def build(*words: str, names: Sequence[str] = (PUSH, PULL), flags: Sequence[str] = ()) -> Trial:
        return Trial(program, words, tuple(task(name, words, flags) for name in names))

    return build


def numbers(run: LiveRun, role: int) -> list[int]:
    """The calls that have this role."""
    return [FIRST + int(k) for k in np.flatnonzero(run.roles & np.uint64(role))]


def test_calls_of_both_run_as_mock_ups_and_the_program_does_the_same(trial: Build) -> None:
    """Each finds what the other has written, although both have copies of their own."""
    one = trial()
    push, pull = one.run()
    assert one.same(push)
    for run in (push, pull):
        assert (run.calls, run.mockups, run.passed, run.within) == (FOLLOWING, FOLLOWING, 0, 0)
        assert not run.error
        assert not run.inside
        assert numbers(run, MOCKUP) == list(range(FIRST, CALLS + 1))
        assert 0 < run.copies_s < run.aside_s < run.cpu_seconds
        assert 100 < run.aside_faults < run.faults  # each copy back writes to pages that are watched
    assert numbers(push, CONVERTED) == list(range(FIRST + 1, CALLS + 1))
    assert len(numbers(pull, CONVERTED)) >= FOLLOWING - 1
    assert push.conversions == 1 + FOLLOWING - 1 + FOLLOWING


@pytest.mark.parametrize("name", [PUSH, PULL])
def test_a_wrong_mock_up_of_either_is_seen(trial: Build, name: str) -> None:
    one, wrong = trial(), trial(flags=["-UWRONG", "-DWRONG=1"])
    mixed = tuple(w if w.entry.symbol == name else r for w, r in zip(wrong.regions, one.regions, strict=True))
    assert [region.entry.symbol for region in mixed] == [PUSH, PULL]
    tried = replace(one, regions=mixed)
    assert not tried.same(tried.run()[0])


@pytest.mark.parametrize("what", ["", "between", "twice", "late"])
def test_regions_with_one_set_of_arrays_find_what_the_other_wrote_there(trial: Build, what: str) -> None:
    """Data are copied in only where the program itself has written; back they are copied after each call."""
    one = trial(*filter(None, [what]))
    one = replace(one, regions=tuple(replace(r, task=replace(r.task, arrays=7)) for r in one.regions))
    push, pull = one.run()
    assert one.same(push)
    assert push.mockups == FOLLOWING + 10 * (what == "late")
    written = [k for k in range(FIRST, CALLS + 1) if k % 5 == 0] if what == "between" else []
    assert numbers(pull, CONVERTED) == written
    # the original's first calls of pull come after push has its arrays
    behind = [k + 1 for k in written if k < CALLS]
    late = [k for k in numbers(push, CONVERTED) if k not in behind]
    assert len(late) <= 2 * (what == "late")
    assert set(behind) <= set(numbers(push, CONVERTED))
    for calls in ((LiveCalls.ONE, LiveCalls.OTHER), (LiveCalls.ALL, LiveCalls.ONE), (LiveCalls.LOADED, LiveCalls.ALL)):
        mixed = one.with_calls(*calls)
        assert mixed.same(mixed.run()[0])


def test_arrays_in_which_pointers_are_other_numbers_are_not_shared(trial: Build) -> None:
    """What one region has as the number of an element, the other one has as the program does."""
    one = trial(flags=["-DCODES"])
    push, pull = replace(one, regions=tuple(replace(r, task=replace(r.task, arrays=7)) for r in one.regions)).run()
    assert one.same(push)
    assert numbers(push, CONVERTED) == list(range(FIRST + 1, CALLS + 1))
    assert len(numbers(pull, CONVERTED)) >= FOLLOWING - 1


@pytest.mark.parametrize("what", ["between", "twice", "fork", "late"])
def test_what_the_program_does_between_the_regions(trial: Build, what: str) -> None:
    """It writes to the array itself; enters one of them more often; forks a process that has its own code."""
    one = trial(what)
    push, pull = one.run()
    assert one.same(push)
    pushed, pulled = FOLLOWING + 10 * (what == "late"), FOLLOWING + 10 * (what == "twice")
    assert (push.mockups, pull.mockups) == (pushed, pulled)
    if what == "twice":  # its own writes are no reason to copy anew
        assert len(numbers(pull, CONVERTED)) <= FOLLOWING


def test_one_of_them_may_be_left_to_the_original(trial: Build) -> None:
    one = trial("between")
    for push, pull in ((LiveCalls.NONE, LiveCalls.ALL), (LiveCalls.ALL, LiveCalls.LOADED), (LiveCalls.ONE, LiveCalls.OTHER)):
        tried = one.with_calls(push, pull)
        runs = tried.run()
        assert tried.same(runs[0])
        for run, calls in zip(runs, (push, pull), strict=True):
            made, own = len(numbers(run, MOCKUP)), len(numbers(run, ORIGINAL))
            assert made + own == FOLLOWING
            assert (made > 0) == (calls in (LiveCalls.ALL, LiveCalls.ONE, LiveCalls.OTHER))
            assert (own > 0) == (calls != LiveCalls.ALL)


def test_runs_that_are_not_timed_make_no_call(trial: Build) -> None:
    one = trial().with_calls(LiveCalls.UNTIMED, LiveCalls.UNTIMED)
    push, pull = one.run()
    assert one.same(push)
    for run in (push, pull):
        assert (run.calls, run.mockups, run.conversions) == (1, 0, 1)
        assert 0 < run.aside_s < run.cpu_seconds


def test_calls_left_out_are_the_originals_of_their_region_only(trial: Build) -> None:
    one = trial()
    push, pull = one.regions
    one = replace(one, regions=(push, replace(pull, task=replace(pull.task, left_out=(7, 9), last=30))))
    first, second = one.run()
    assert one.same(first)
    assert (first.mockups, first.passed) == (FOLLOWING, 0)
    assert numbers(second, PASSED) == [7, 9, *range(31, CALLS + 1)]


def test_a_block_that_is_freed_ends_it_for_both(trial: Build) -> None:
    one = trial("move")
    one = replace(one, regions=tuple(replace(r, task=replace(r.task, guarded=())) for r in one.regions))
    runs = one.run()
    assert one.same(runs[0])
    for run in runs:
        assert run.mockups == 20 - FIRST + 1
        assert "freed" in run.error


def test_the_region_that_ends_the_program_is_told(trial: Build) -> None:
    one = trial(flags=["-UTRAP", "-DTRAP=17"])
    push, pull = one.run()
    assert push.returncode < 0
    assert (push.inside, pull.inside) == (0, 17)


def test_a_region_inside_another_one(trial: Build) -> None:
    """Its calls run as the mock-up while the outer one is the original; within a mock-up of that they are its own."""
    one = trial("around", names=(AROUND, PUSH, PULL))
    outer = one.with_calls(LiveCalls.LOADED, LiveCalls.ALL, LiveCalls.ALL)
    around, push, pull = outer.run()
    assert outer.same(around)
    assert numbers(around, ORIGINAL) == list(range(FIRST, CALLS + 1))
    assert (push.mockups, pull.mockups) == (3 * CALLS - 2, FOLLOWING)
    around, push, pull = one.run()
    assert one.same(around)
    assert around.mockups == FOLLOWING
    assert push.within == 2 * FOLLOWING
    assert push.mockups == FOLLOWING + 4  # four in the turns before the trial of the outer one
    assert pull.mockups == FOLLOWING


@pytest.mark.parametrize("names", [(PUSH, SWEEP, PULL), (SWEEP, PULL)])
def test_a_loop_may_be_one_of_them(trial: Build, names: Sequence[str]) -> None:
    one = trial("sweep", names=names)
    runs = one.run()
    assert one.same(runs[0])
    assert {(run.mockups, run.passed, run.error) for run in runs} == {(FOLLOWING, 0, "")}
    timed = one.with_calls(*[LiveCalls.NONE] * len(names))
    runs = timed.run()
    assert timed.same(runs[0])
    for run in runs:
        assert numbers(run, ORIGINAL) == list(range(FIRST, CALLS + 1))
        assert (run.times > 0).all()


def test_regions_that_cannot_be_in_one_run(trial: Build, tmp_path: Path) -> None:
    one, other = (region.entry for region in trial().regions)
    assert why_not_together((one, other)) == ""
    assert why_not_together((one, one)) == "push begins or ends where another region does"
    assert why_not_together([one] * 9) == "there are more than 8 regions"
    assert why_not_together((one, replace(other, path=tmp_path / "b"))) == "pull lies in another file than push"
    assert why_not_together((one, replace(other, exits=(one,)))) == "pull begins or ends where another region does"
    body = replace(other, outlined=Outlined(other.path, 64))
    assert why_not_together((one, body)) == "pull is started as a parallel region"
    short = replace(other, code=b"\xc3" + b"\x55" * 20)  # a return, and what may be another function
    assert why_not_together((one, short)) == "the first instructions of pull cannot be moved"
    assert why_not_together((short, one)) == ""
    with pytest.raises(SnapshotError, match="beside other regions"):
        further_region(short, 1, False)
