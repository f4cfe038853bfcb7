"""One decision over the calls of all kinds, on a machine that takes the times it is told; and how the reports say it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from layout_advise.decide.decision import Decision
from layout_advise.decide.mixture import Portion
from layout_advise.decide.untried import not_all_kinds
from layout_advise.decide.verdict import VerdictContext
from layout_advise.decide.verdict_over_kinds import KindRace, decide_over_kinds
from layout_advise.measure.live.outcome import LiveTrial
from layout_advise.measure.setup import Bench, Contest, Entrant
from layout_advise.mockup.timing.plan import Memory, TimingPlan
from layout_advise.mockup.timing.statistics import Ratio
from layout_advise.mockup.timing.variants import IDENTITY, Variant
from layout_advise.reports.model.candidate import Interval, KindSpeedup
from layout_advise.reports.model.hotspot import KindReport, Verdict
from layout_advise.reports.pages import html
from layout_advise.reports.pages.terminal import render
from tests.support.decisions import KindAtMachine, answered, timed_once
from tests.support.mockups.fake_machine import TRUE_NS, FakeMachine
from tests.support.sample_report import report
from tests.support.variants import variant

C1 = variant("c1")
CONTEXT = VerdictContext("criu", "verified", True)
Raced = tuple[KindRace, KindAtMachine | None]


def race(
    monkeypatch: pytest.MonkeyPatch, text: str, share: float, gain: float, identity: float = 1.0, in_situ: float = 1000.0
) -> Raced:
    """Calls of one kind that take 1000 ns, at which ``c1`` is ``gain`` times as fast."""
    paths = {IDENTITY: Path(f"identity of {text}"), C1: Path(f"c1 of {text}")}
    monkeypatch.setitem(TRUE_NS, paths[IDENTITY].name, 1000.0 * identity)
    monkeypatch.setitem(TRUE_NS, paths[C1].name, 1000.0 / gain)

    def rebuild(best: Variant, names: Sequence[Variant], places: bool) -> dict[Variant, Path]:
        return {name: paths[name] for name in (best, *names)}

    contest = Contest({IDENTITY: paths[IDENTITY]}, [Entrant(C1, "store it", "verified", paths[C1])])
    plans = TimingPlan(restores=7), TimingPlan(restores=5, around=True)
    kind = timed_once(contest, Bench(FakeMachine(), Memory(), *plans, lambda text, i, n: None), rebuild, in_situ)
    return KindRace(text, share, kind.times, in_situ), kind


def decided(timed: Sequence[Raced], left_out: Sequence[Portion] = ()) -> Decision:
    return answered(decide_over_kinds([race for race, _ in timed], left_out, CONTEXT), [kind for _, kind in timed])


def test_a_gain_of_all_kinds_is_confirmed_at_all_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    races = [race(monkeypatch, "odd calls", 0.5, 3.0), race(monkeypatch, "even calls", 0.5, 1.0)]
    decision = decided(races)
    assert (decision.verdict.action, decision.verdict.candidate) == ("change", "c1")
    assert decision.verdict.gain == pytest.approx(1.5, rel=0.03)
    assert "even calls, 50%: 1.0" in decision.verdict.text
    assert all(kind.again is not None for kind in decision.kinds)
    assert decision.again is decision.kinds[0].again


def test_a_kind_that_loses_stops_the_change(monkeypatch: pytest.MonkeyPatch) -> None:
    races = [race(monkeypatch, "odd calls", 0.5, 3.0), race(monkeypatch, "even calls", 0.5, 0.8)]
    decision = decided(races)
    assert (decision.verdict.action, decision.verdict.reason) == ("undecided", "kinds-disagree")
    assert "odd calls, 50% of the hotspot's time: 3.0 times as fast; even calls, 50%: 0.80 times" in decision.verdict.text
    assert decision.again is None


@pytest.mark.parametrize(("gain", "processes"), [(1.0499, {14, 28}), (2.0, {7})])
def test_all_kinds_are_timed_in_further_processes_while_noise_leaves_them_open(
    monkeypatch: pytest.MonkeyPatch, gain: float, processes: set[int]
) -> None:
    races = [race(monkeypatch, "odd calls", 0.5, gain), race(monkeypatch, "even calls", 0.5, gain)]
    with_time = [(one, replace(kind, most_restores=28)) for one, kind in races if kind is not None]
    assert {len(kind.first.steady) for kind in decided(with_time).kinds} <= processes


def test_what_is_not_measured_or_not_touched_counts_as_unchanged(monkeypatch: pytest.MonkeyPatch) -> None:
    untouched = KindRace("even calls", 0.3, None, 1000.0, frozenset({C1})), None
    races = [race(monkeypatch, "odd calls", 0.62, 2.0), untouched]
    decision = decided(races, [Portion("calls like call 7", 0.08, None)])
    assert decision.verdict.gain == pytest.approx(1 / (0.38 + 0.31), rel=0.02)
    assert "calls like call 7, 8%: not measured, counted as unchanged" in decision.verdict.text


def test_what_a_kind_leaves_open_widens_the_gain_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    def verdict(**odd: float) -> Verdict:
        others = race(monkeypatch, "odd calls", 0.3, 3.0, **odd)
        return decided([race(monkeypatch, "even calls", 0.7, 3.0), others]).verdict

    sure, off, elsewhere = verdict(), verdict(identity=1.4), verdict(in_situ=5000.0)
    assert [v.action for v in (sure, off, elsewhere)] == ["change"] * 3
    assert sure.interval is not None
    assert off.interval is not None
    assert elsewhere.interval is not None
    assert off.interval.hi > 1.05 * sure.interval.hi  # over the unchanged mock-up it gains more
    assert elsewhere.interval.lo < 0.8 * sure.interval.lo  # four fifths of the odd calls' time count as not improved


def test_the_running_program_has_calls_of_all_kinds(monkeypatch: pytest.MonkeyPatch) -> None:
    """The snapshot shows a fifth of the even calls' time."""
    odd, (even, kind) = race(monkeypatch, "odd calls", 0.5, 3.0), race(monkeypatch, "even calls", 0.5, 3.0, in_situ=5000.0)
    assert odd[1] is not None
    trial = LiveTrial(Ratio(1.4, 1.38, 1.42, 5), calls=100, timed=98)
    main = replace(odd[1], live={C1: trial})
    decision = decided([(odd[0], main), (even, kind)])
    assert decision.trials == {C1: trial}
    assert (decision.verdict.action, decision.verdict.gain) == ("change", 1.4)
    (one,) = decision.results
    assert [d.name for d in one.budget] == ["live", "form", "rebuild"]


def test_unmeasured_calls_with_much_of_the_time_are_told() -> None:
    change = Verdict("change", "c1", 2.0, "measured-gain", "Change it.")
    assert not_all_kinds(change).action == "change"
    assert "Not tried: calls with a good part of the hotspot's time" in not_all_kinds(change).text


def test_the_reports_name_the_kinds_and_their_speedups() -> None:
    plain = report()
    kinds = (
        KindReport(4, 0.7, 5, 8.2e6, "odd <calls>"),
        KindReport(4, 0.22, 6, 2.1e6, "even calls"),
        KindReport(1, 0.08, 1, 1e6, "calls like call 1", "too little of the hotspot's time"),
    )
    gains = (
        KindSpeedup(0, Interval(3.9, 3.8, 4.0, 9)),
        KindSpeedup(1, Interval(1.5, 1.4, 1.6, 9)),
    )
    hotspot = plain.hotspots[0]
    candidates = tuple(msgspec.structs.replace(c, kinds=gains) if c.speedup else c for c in hotspot.candidates)
    hotspot = msgspec.structs.replace(hotspot, kinds=kinds, candidates=candidates)
    said = render(msgspec.structs.replace(plain, hotspots=(hotspot,)))
    assert "even calls: about 4 of 2.1 ms, 22% of its time; call 6 was stopped at" in said
    assert "not measured (too little of the hotspot's time)" in said
    assert "c1: odd <calls> 3.90×, even calls 1.50×" in said
    page = html.render(msgspec.structs.replace(plain, hotspots=(hotspot,)))
    assert "odd &lt;calls&gt; 3.90×, even calls 1.50×" in page
    assert "of its time" not in render(plain)
