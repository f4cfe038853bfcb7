"""One decision over the calls of all kinds, on a machine that takes the times it is told; and how the reports say it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from layout_advise.decide.mixture import Portion
from layout_advise.decide.verdict import VerdictContext
from layout_advise.decide.verdict_over_kinds import Race, decide_mixed
from layout_advise.measure.entrants import Bench, Contest, Entrant
from layout_advise.measure.timing import Decision
from layout_advise.mockup.timing.measure import TimingPlan
from layout_advise.mockup.timing.names import IDENTITY
from layout_advise.observe.other_kinds import doubt_untried, not_all_kinds
from layout_advise.reports.model.candidate import Interval, KindSpeedup
from layout_advise.reports.model.hotspot import KindReport, Verdict
from layout_advise.reports.pages import html
from layout_advise.reports.pages.terminal import render
from tests.support.mockups.fake_machine import TRUE_NS, FakeMachine
from tests.support.sample_report import report

CONTEXT = VerdictContext("criu", "verified", None, 1.0, True)


def race(
    monkeypatch: pytest.MonkeyPatch, text: str, share: float, gain: float, identity: float = 1.0, in_situ: float = 1000.0
) -> Race:
    """Calls of one kind that take 1000 ns, at which ``c1`` is ``gain`` times as fast."""
    paths = {IDENTITY: Path(f"identity of {text}"), "c1": Path(f"c1 of {text}")}
    monkeypatch.setitem(TRUE_NS, paths[IDENTITY].name, 1000.0 * identity)
    monkeypatch.setitem(TRUE_NS, paths["c1"].name, 1000.0 / gain)

    def rebuild(best: str, names: Sequence[str], places: bool) -> dict[str, Path]:
        return {name: paths[name] for name in (best, *names)}

    entrant = Entrant("c1", "store it", "verified", paths["c1"])
    contest = Contest({IDENTITY: paths[IDENTITY]}, [entrant], (), rebuild, lambda timings, name: None)
    machine = FakeMachine()
    bench = Bench(machine, ((), ()), TimingPlan(restores=7), TimingPlan(restores=5, around=True), lambda text, i, n: None)
    return Race(text, share, contest, bench, in_situ)


def test_a_gain_of_all_kinds_is_confirmed_at_all_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    races = [race(monkeypatch, "odd calls", 0.5, 3.0), race(monkeypatch, "even calls", 0.5, 1.0)]
    decision = decide_mixed(races, (), CONTEXT)
    assert (decision.verdict.action, decision.verdict.candidate) == ("change", "c1")
    assert decision.verdict.gain == pytest.approx(1.5, rel=0.03)
    assert "even calls, 50%: 1.0" in decision.verdict.text
    assert all(kind.again is not None for kind in decision.kinds)
    assert decision.again is decision.kinds[0].again


def test_a_kind_that_loses_stops_the_change(monkeypatch: pytest.MonkeyPatch) -> None:
    races = [race(monkeypatch, "odd calls", 0.5, 3.0), race(monkeypatch, "even calls", 0.5, 0.8)]
    decision = decide_mixed(races, (), CONTEXT)
    assert (decision.verdict.action, decision.verdict.reason) == ("undecided", "kinds-disagree")
    assert "odd calls, 50% of the hotspot's time: 3.0 times as fast; even calls, 50%: 0.80 times" in decision.verdict.text
    assert decision.again is None


def test_what_is_not_measured_or_not_touched_counts_as_unchanged(monkeypatch: pytest.MonkeyPatch) -> None:
    untouched = Race("even calls", 0.3, None, None, 1000.0, frozenset({"c1"}))
    races = [race(monkeypatch, "odd calls", 0.62, 2.0), untouched]
    decision = decide_mixed(races, [Portion("calls like call 7", 0.08, None)], CONTEXT)
    assert decision.verdict.gain == pytest.approx(1 / (0.38 + 0.31), rel=0.02)
    assert "calls like call 7, 8%: not measured, counted as unchanged" in decision.verdict.text


def test_nothing_is_said_where_one_kind_is_not_reproduced(monkeypatch: pytest.MonkeyPatch) -> None:
    def verdict(**odd: float) -> Verdict:
        others = race(monkeypatch, "odd calls", 0.3, 3.0, **odd)
        decision: Decision = decide_mixed([race(monkeypatch, "even calls", 0.7, 3.0), others], (), CONTEXT)
        return decision.verdict

    off, elsewhere = verdict(identity=1.4), verdict(in_situ=5000.0)
    assert (off.action, off.reason) == ("undecided", "identity-off")
    assert (elsewhere.action, elsewhere.reason) == ("undecided", "not-in-situ")
    assert off.text.startswith("Undecided: at odd calls the unchanged mock-up")
    assert "odd calls" in elsewhere.text


def test_unmeasured_calls_with_much_of_the_time_leave_it_undecided() -> None:
    change = Verdict("change", "c1", 2.0, "measured-gain", "Change it.")
    assert not_all_kinds(change).reason == "kinds-not-measured"


def test_no_keep_where_other_kinds_use_structures_of_their_own() -> None:
    keep = Verdict("keep", None, None, "no-gain", "Keep it.")
    assert doubt_untried(keep, ()) == keep
    assert doubt_untried(keep, ("grid",)).reason == "not-all-tried"


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
