"""The plan run in a program that is played: what is compared, taken off and told, and why there may be no run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import numpy as np
import pytest

from layout_advise.describe.studied import Studied
from layout_advise.errors import OvertimeError
from layout_advise.layoutalgebra.derive.structure import Axis, Buffer, Candidate, Dim, Field, FieldMap, Relayout, Structure
from layout_advise.measure.live import bench as live_bench
from layout_advise.measure.live.bench import LiveBench, NoTrialError
from layout_advise.measure.live.trial import PreparedTrial
from layout_advise.regions import live_plan
from layout_advise.regions.live_plan import as_run, contradicted, sets_of_arrays, with_trial
from layout_advise.regions.looked import Looked
from layout_advise.reports.exports.markdown import markdown
from layout_advise.reports.model import contract
from layout_advise.reports.model.candidate import Interval
from layout_advise.reports.model.plan import PlanPlace, PlanTrial, ProgramPlan, RegionOrderReport, StructurePlan, TriedRegion
from layout_advise.reports.pages import html, terminal
from layout_advise.reports.words import plan_words
from layout_advise.tracer.live.orders import LiveCalls, LiveTask, RegionTask
from layout_advise.tracer.live.outcome import CONVERTED, MOCKUP, LiveRun
from layout_advise.tracer.process.patching import Entry
from tests.support.sample_report import candidate, report

CALLS = 100
SECONDS = 60.0
CODE = bytes.fromhex("4889f8") * 8


class Played:
    """A program of 1 s of which, under the plan, ``takes`` s are left, with ``aside`` s of the trial and ``copies`` s of
    copies in them for each region, where they are ``copied`` at each call; ``changes`` of the run of a region."""

    def __init__(
        self,
        takes: float = 0.5,
        aside: float = 0.2,
        converted: bool = False,
        copied: bool = True,
        changes: Callable[[LiveCalls, int], dict[str, Any]] = lambda calls, number: {},
    ) -> None:
        self.takes, self.aside, self.changes = takes, aside, changes
        self.converted, self.copied = converted, copied
        self.runs: list[tuple[LiveCalls, bool, tuple[str, ...]]] = []
        self.arrays: list[tuple[int, ...]] = []

    def run(self, command: Sequence[str], regions: Sequence[RegionTask], **options: Any) -> tuple[LiveRun, ...]:
        calls, flush = regions[0].calls, regions[0].task.flush
        self.runs.append((calls, flush, tuple(one.task.mockup.name for one in regions)))
        assert all(one.task.account or calls in (LiveCalls.NONE, LiveCalls.LOADED) for one in regions)
        self.arrays.append(tuple(one.task.arrays for one in regions))
        made = CALLS if calls == LiveCalls.ALL else 0
        roles = np.full(CALLS, (MOCKUP | (CONVERTED if self.converted else 0)) if made else 0, np.uint64)
        aside = self.aside if made else 0.01
        seconds = (self.takes + (0.1 if flush else 0.0) if made else 1.0) + aside * len(regions)
        found = []
        for number in range(len(regions)):
            run = LiveRun(
                CALLS, made, 1 + made * self.copied, 0, 0, "", np.zeros(CALLS), roles, 0, 1.0, seconds, b"12\n", b""
            )
            own = {"aside_s": aside, "copies_s": aside / 2 if made else 0.0} | self.changes(calls, number)
            found.append(_with(run, **own))
        return tuple(found)


def _with(run: LiveRun, **changes: Any) -> LiveRun:
    names = LiveRun.__dataclass_fields__
    return LiveRun(**{name: changes.get(name, getattr(run, name)) for name in names})


def laid_out(block: int, base: int = 0x10000, reads: int = 3) -> Candidate:
    """A layout in blocks of an array of records of two fields, which so many accesses read."""
    fields = (Field("x", 0, 8, "double", reads, 0), Field("y", 8, 8, "double", reads, 1))
    structure = Structure("s0", "pool", base, 640, (Dim(40, 16),), fields)
    axes = (Axis(0, "div", block, 16 * block, 1), Axis(0, "mod", block, 8, 1))
    maps = (FieldMap(0, 0, 0, axes), FieldMap(1, 0, 8 * block, axes))
    return Candidate("c1", (Relayout(structure, maps, (Buffer("pool_x_y", 640),), (), ""),), (), ())


@pytest.fixture(autouse=True)
def _prepared(monkeypatch: pytest.MonkeyPatch) -> None:
    """A region's own trial is what its bench says."""
    monkeypatch.setattr(live_plan, "prepared", lambda bench, *rest: bench.prepared(*rest))


def looked(name: str, gain: float, address: int, *, refusal: str = "", mockup: bool = True, alone: str = "") -> Looked:
    """A region with a layout c1, whose entry is at ``address``; ``alone`` is what its own trial ends with."""
    entry = Entry(Path("/bin/p"), address, CODE, name)
    silent = SimpleNamespace(step=lambda text: None, count=lambda text, i, n: None)
    case = SimpleNamespace(
        profiled=SimpleNamespace(entry=entry, run=SimpleNamespace(seconds=1.0)),
        settings=SimpleNamespace(command=("p",), timeout=60.0),
        space=SimpleNamespace(progress=silent, scratch=None),
        chosen=SimpleNamespace(call=5),
        stdin=None,
    )
    task = LiveTask(Path(f"{name}.so"), 5, ())
    bench = SimpleNamespace(case=case, ordinary=[], refusal=lambda: refusal, untimed=lambda: "")
    bench.task, bench.is_quick = lambda subject: task, lambda: True

    def prepared(subject: object, until: float, after: int) -> PreparedTrial:
        if alone:
            raise NoTrialError(alone)
        return PreparedTrial(task, bench.ordinary[0], True)

    bench.prepared = prepared
    bench.compared = lambda run: LiveBench.compared(cast("Any", bench), run)
    subject = SimpleNamespace(candidate=laid_out(2))
    ways = SimpleNamespace(bench=bench, subject=lambda variant: subject, variants={"c1": None, "c2": None})
    rows = tuple(candidate(n, Interval(gain, gain, gain, 9)) for n in (1, 2))
    measured = msgspec.structs.replace(report().hotspots[0], symbol=name, name=name, calls=CALLS, candidates=rows)
    studied = Studied(measured, cast("Any", None), live=cast("Any", ways if mockup else None))
    return Looked(cast("Any", case), studied)


def plan(action: str = "change", **changes: Any) -> ProgramPlan:
    one = StructurePlan(
        structures=("pool",), action=cast("Any", action), candidate="c1", label="c1 (SoA)", places=(),
        program=Interval(2.0, 1.8, 2.2), regions=(), measured=0.9,
    )  # fmt: skip
    return ProgramPlan(RegionOrderReport("for 100 { push; pull }"), (msgspec.structs.replace(one, **changes),))


def two(**changes: Any) -> list[Looked]:
    return [looked("push", 2.0, 0x1000), looked("pull", 2.0, 0x2000, **changes)]


def tried(
    monkeypatch: pytest.MonkeyPatch, played: Played, regions: Sequence[Looked] = (), what: ProgramPlan | None = None
) -> StructurePlan:
    monkeypatch.setattr(live_plan, "run_live_regions", played.run)
    found = with_trial(what or plan(), regions or two(), "auto", SECONDS)
    assert found is not None
    return found.structures[0]


def refused(monkeypatch: pytest.MonkeyPatch, *arguments: Any, **changes: Any) -> str:
    """Why the plan was not run."""
    one = tried(monkeypatch, *arguments, **changes)
    assert one.trial is not None
    assert one.trial.speedup is None
    assert one.action == "change"
    assert plan_words.facts(one)[1] == f"Not run as a whole: {one.trial.reason}."
    return one.trial.reason


def test_the_program_s_time_is_told_without_and_with_the_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    played = Played()
    one = tried(monkeypatch, played)
    trial = one.trial
    assert trial is not None
    assert trial.speedup is not None
    assert trial.speedup.median == pytest.approx(2.0)
    assert trial.speedup.lo == pytest.approx(2.0)
    assert 2.0 < trial.speedup.hi < 2.001  # 200 calls of mock-ups whose own time may be missing
    assert trial.with_copies == pytest.approx(1 / 0.7)
    assert (trial.original_s, trial.layout_s, trial.predicted_s) == pytest.approx((1.0, 0.5, 0.5))
    assert (trial.copies_s, trial.own_s) == pytest.approx((0.2, 0.2))
    assert (trial.rounds, trial.flushed, trial.held, trial.output_bytes) == (3, False, True, 3)
    assert trial.regions == tuple(TriedRegion(n, "c1", 5, CALLS, CALLS, 0, 0, 1 + CALLS) for n in ("push", "pull"))
    assert one.action == "change"
    kinds = [calls for calls, _, _ in played.runs]
    assert kinds[:3] == [LiveCalls.NONE, LiveCalls.LOADED, LiveCalls.ALL]
    a, b = LiveCalls.UNTIMED, LiveCalls.ALL
    assert kinds[3:] == [a, b, b, a, a, b]
    assert {names for _, _, names in played.runs} == {("push.so", "pull.so")}
    assert played.arrays[2:] == [(1, 1)] * 7  # one set, as the two have one layout


def test_mock_ups_of_the_same_layout_of_the_same_memory_have_one_set_of_arrays() -> None:
    one, other, elsewhere = laid_out(2), laid_out(4), laid_out(2, base=0x20000)
    assert sets_of_arrays([one, other, laid_out(2, reads=7), elsewhere, other]) == [1, 2, 1, 3, 2]


def test_where_data_are_copied_before_many_calls_the_copies_are_flushed_too(monkeypatch: pytest.MonkeyPatch) -> None:
    played = Played(converted=True)
    trial = tried(monkeypatch, played).trial
    assert trial is not None
    assert trial.speedup is not None
    assert (trial.flushed, trial.rounds) == (True, 3)
    flushes = [flush for calls, flush, _ in played.runs if calls == LiveCalls.ALL]
    assert flushes == [False, False, True, True, False, False, True]
    assert trial.speedup.lo == pytest.approx(1 / 0.6)
    assert trial.speedup.median == pytest.approx((2.0 / 0.6) ** 0.5)


def test_a_plan_that_the_program_does_not_gain_by_is_not_advised(monkeypatch: pytest.MonkeyPatch) -> None:
    one = tried(monkeypatch, Played(takes=1.1, copied=False))
    assert one.action == "undecided"
    assert plan_words.headline(one) == (
        "Whole program, undecided: with pool as c1 (SoA) it was predicted to run 2.0× as fast, and ran 0.91× (0.91–0.91)."
    )
    assert tried(monkeypatch, Played(takes=0.9, copied=False)).action == "change"  # less than predicted
    trial = one.trial
    assert trial is not None
    few = tuple(msgspec.structs.replace(r, mockups=70, left_out=30) for r in trial.regions)
    assert contradicted(trial, 1.05)
    assert not contradicted(msgspec.structs.replace(trial, regions=few), 1.05)
    late = tuple(msgspec.structs.replace(r, first=40) for r in trial.regions)
    assert not contradicted(msgspec.structs.replace(trial, regions=late), 1.05)
    copied = tuple(msgspec.structs.replace(r, conversions=2 * r.calls) for r in trial.regions)
    assert not contradicted(msgspec.structs.replace(trial, regions=copied), 1.05)  # the copies may have taken the gain
    assert not contradicted(PlanTrial("no time"), 1.05)


def test_no_region_advises_what_the_program_did_not_gain_by(monkeypatch: pytest.MonkeyPatch) -> None:
    regions = [looked("push", 2.0, 0x1000), looked("pull", 2.0, 0x2000)]
    advised = regions[0].studied.report.verdict
    assert (advised.action, advised.candidate) == ("change", "c1")
    monkeypatch.setattr(live_plan, "run_live_regions", Played(takes=1.1, copied=False).run)
    told = as_run(regions, with_trial(plan(), regions, "auto", SECONDS))[0].studied.report.verdict
    assert (told.action, told.candidate, told.reason) == ("undecided", None, "not-in-program")
    assert "and ran 0.91× (0.91–0.91). Here alone: " in told.text
    monkeypatch.setattr(live_plan, "run_live_regions", Played().run)
    assert as_run(regions, with_trial(plan(), regions, "auto", SECONDS))[0].studied.report.verdict == advised
    assert as_run(regions, with_trial(plan("undecided"), regions, "always", SECONDS))[0].studied.report.verdict == advised
    assert as_run(regions, None)[0].studied.report.verdict == advised


def test_what_watched_pages_may_cost_the_program_widens_the_upper_end(monkeypatch: pytest.MonkeyPatch) -> None:
    def stops(calls: LiveCalls, number: int) -> dict[str, Any]:
        return {"faults": 120_000, "aside_faults": 10_000} if calls == LiveCalls.ALL else {"faults": 900, "aside_faults": 50}

    trial = tried(monkeypatch, Played(changes=stops)).trial
    assert trial is not None
    assert trial.speedup is not None
    assert (trial.speedup.lo, trial.speedup.median) == pytest.approx((2.0, 2.0))
    further = (120_000 - 2 * 10_000) - (900 - 2 * 50)  # each region's own are told with it
    assert trial.speedup.hi == pytest.approx(1 / (0.5 - further * 1.5e-6 - 200 * 0.3e-6))
    many = Played(changes=lambda calls, number: {"faults": 9_000_000 if calls == LiveCalls.ALL else 0})
    trial = tried(monkeypatch, many).trial
    assert trial is not None
    assert trial.speedup is not None
    assert trial.speedup.hi == pytest.approx(100)


def test_no_more_is_claimed_than_the_program_did(monkeypatch: pytest.MonkeyPatch) -> None:
    one = tried(monkeypatch, Played(takes=0.8))
    assert plan_words.headline(one) == (
        "Whole program: store pool as c1 (SoA) for good: at least 1.25× faster (predicted 1.80–2.2, run so 1.25–1.25)."
    )


def test_a_run_that_leaves_a_loss_open_does_not_make_the_claim(monkeypatch: pytest.MonkeyPatch) -> None:
    one = tried(monkeypatch, Played(takes=0.95, converted=True))
    assert one.action == "change"
    assert plan_words.headline(one) == (
        "Whole program: store pool as c1 (SoA) for good: predicted at least 1.80× faster (1.80–2.2), run so 0.95–1.05."
    )


def test_what_is_not_to_be_run_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_plan, "run_live_regions", Played().run)
    assert with_trial(None, two(), "auto", SECONDS) is None
    for what, live in ((plan(), "never"), (plan("keep"), "always"), (plan("undecided"), "auto")):
        assert with_trial(what, two(), cast("Any", live), SECONDS) == what
    nothing = plan("undecided", candidate=None, label="as it is")
    assert with_trial(nothing, two(), "always", SECONDS) == nothing
    asked = with_trial(plan("undecided"), two(), "always", SECONDS)
    assert asked is not None
    assert asked.structures[0].trial is not None
    assert asked.structures[0].action == "undecided"


def test_regions_that_stay_as_they_are_are_left_to_the_original(monkeypatch: pytest.MonkeyPatch) -> None:
    """A region with one layout at all its places has that one; one that would have several is not run."""
    places = (PlanPlace("push", "c1", 9), PlanPlace("pull", None, 9, True))
    played = Played()
    trial = tried(monkeypatch, played, what=plan(candidate=None, places=places)).trial
    assert trial is not None
    assert [one.hotspot for one in trial.regions] == ["push"]
    assert {names for _, _, names in played.runs} == {("push.so",)}
    several = plan(candidate=None, places=(*places, PlanPlace("push", "c2", 9, True)))
    assert refused(monkeypatch, Played(), what=several) == "push would have several layouts in turn"


def test_why_it_is_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def why(**changes: Any) -> str:
        return refused(monkeypatch, Played(), two(**changes))

    assert why(refusal="several threads run the region") == "pull: several threads run the region"
    assert why(mockup=False) == "there is no mock-up of pull that could run in the program"
    assert why(alone="the program printed something else") == "pull: the program printed something else"
    beside = [looked("push", 2.0, 0x1000), looked("pull", 2.0, 0x1002)]
    assert refused(monkeypatch, Played(), beside) == "pull begins or ends where another region does"
    slow = two()
    slow[0].case.profiled.run.seconds = 20.0  # type: ignore[misc]
    assert (
        refused(monkeypatch, Played(), slow) == "the program takes 20 s, and would have to run 11 times in 60 s (--budget)"
    )
    no_time = Played(takes=-0.1)
    assert refused(monkeypatch, no_time) == "the trial itself took all of the program's time"


def test_a_program_that_is_too_slow_so_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 40 s that are left the run with all calls as mock-ups has a third: two rounds come after it."""
    limits = []

    class Slow(Played):
        def run(self, command: Sequence[str], regions: Sequence[RegionTask], **options: Any) -> tuple[LiveRun, ...]:
            limits.append(options["timeout"])
            if regions[0].calls == LiveCalls.ALL:
                raise OvertimeError("the program took longer", "it was ended")
            return super().run(command, regions, **options)

    monkeypatch.setattr(live_bench, "own_time", lambda: 20.0)
    monkeypatch.setattr(live_plan, "own_time", lambda: 0.0)
    regions = two()
    regions[0].case.profiled.run.seconds = 2.0  # type: ignore[misc]
    assert (
        refused(monkeypatch, Slow(), regions)
        == "in a trial the program takes more than 5.0 times as long as by itself: too slow for one"
    )
    assert limits == pytest.approx([40 / 9, 40 / 8, 10.0])


def test_what_goes_wrong_with_all_at_once_is_told_by_its_region(monkeypatch: pytest.MonkeyPatch) -> None:
    def ends(**changes: Any) -> str:
        def on(calls: LiveCalls, number: int) -> dict[str, Any]:
            return changes if calls == LiveCalls.ALL and (number or "returncode" not in changes) else {}

        return refused(monkeypatch, Played(changes=on))

    assert ends(error="the program has several threads") == "push: the program has several threads"
    assert ends(stdout=b"13\n") == "the program printed something else"

    def dies(calls: LiveCalls, number: int) -> dict[str, Any]:
        return {"inside": 17 * number, "returncode": -4} if calls == LiveCalls.ALL else {}

    why = refused(monkeypatch, Played(changes=dies))
    assert why.startswith("the mock-up of pull ended the program at call 17 (")


def test_pages_and_texts_have_the_run_beside_the_prediction(monkeypatch: pytest.MonkeyPatch) -> None:
    one = tried(monkeypatch, Played())
    whole = msgspec.structs.replace(report(), plan=msgspec.structs.replace(plan(), structures=(one,)))
    assert contract.decode(contract.encode(whole)) == whole
    _, times, off, same = plan_words.facts(one)
    assert times == (
        "Run so, all regions at once: 2.0× (2.0–2.0), 0.50 s of CPU time instead of 1.00 s, over 3 rounds of runs; "
        "predicted 2.0× (1.80–2.2), 0.50 s."
    )
    assert off == (
        "Taken off: 0.20 s of copies between the layouts, which a permanent one does not need, and 0.20 s of the trial's "
        "own; with the copies 1.43×. They also take room in the caches, which a permanent layout has for itself: it may "
        "gain more."
    )
    assert same == (
        "Calls run so: push 100 of 100 from call 5 on as c1, 101 copies; pull 100 of 100 from call 5 on as c1, 101 copies. "
        "Exit status 0 and 3 bytes of output as ordinarily. Before, no access went to a place that is not that of the "
        "layout."
    )
    for text in (terminal.render(whole), html.render(whole), markdown(whole)):
        for words in ("Run so, all regions at once: 2.0×", "predicted 2.0×", "with the copies 1.43×", "101 copies"):
            assert words in text
