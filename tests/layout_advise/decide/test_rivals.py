"""The winner gains less when it is measured again: candidates whose first times stay above that are measured again, too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from layout_advise.decide.decision import Decision
from layout_advise.decide.single import decide_single
from layout_advise.decide.verdict import VerdictContext
from layout_advise.measure.setup import Bench, Contest, Entrant
from layout_advise.mockup.timing.plan import Memory, TimingPlan
from layout_advise.mockup.timing.variants import IDENTITY, Variant
from tests.support.decisions import answered, timed_once
from tests.support.mockups.fake_machine import TRUE_NS, FakeMachine


def decided(
    first: Mapping[str, float], second: Mapping[str, float], monkeypatch: pytest.MonkeyPatch
) -> tuple[Decision, list[str]]:
    """The decision where candidates take ``first``, and built anew ``second`` (nanoseconds), and which were built anew."""
    for name, ns in first.items():
        monkeypatch.setitem(TRUE_NS, name, ns)
        monkeypatch.setitem(TRUE_NS, f"{name}-anew", second[name])
    built: list[str] = []

    def rebuild(best: Variant, names: Sequence[Variant], places: bool) -> dict[Variant, Path]:
        built.append(str(best))
        return {best: Path(f"{best}-anew"), **{name: Path(str(name)) for name in names}}

    entrants = [Entrant(Variant(name), f"store it as {name}", "verified", Path(name)) for name in first]
    bench = Bench(
        FakeMachine(), Memory(), TimingPlan(restores=7), TimingPlan(restores=5, around=True), lambda text, i, n: None
    )
    kind = timed_once(Contest({IDENTITY: Path("identity")}, entrants), bench, rebuild, 1000.0)
    return answered(decide_single(kind.times, 1000.0, VerdictContext("criu", "verified", True)), [kind]), built


def test_the_best_of_the_second_times_is_advised(monkeypatch: pytest.MonkeyPatch) -> None:
    decision, built = decided({"c1": 200.0, "c2": 220.0}, {"c1": 330.0, "c2": 225.0}, monkeypatch)
    assert built == ["c1", "c2"]
    assert (decision.verdict.action, decision.verdict.candidate) == ("change", "c2")
    assert decision.winner == Variant("c2")
    assert list(decision.rivals) == [Variant("c1")]
    gains = {r.id: r.speedup.median for r in decision.results if r.speedup}
    assert gains == pytest.approx({"c1": 1000 / 330, "c2": 1000 / 225}, rel=0.03)
    assert decision.verdict.gain == pytest.approx(1000 / 225, rel=0.05)


def test_a_rival_that_falls_behind_as_well_is_not_advised(monkeypatch: pytest.MonkeyPatch) -> None:
    decision, built = decided({"c1": 200.0, "c2": 220.0}, {"c1": 330.0, "c2": 450.0}, monkeypatch)
    assert built == ["c1", "c2"]
    assert decision.winner == Variant("c1")
    assert decision.verdict.gain == pytest.approx(1000 / 330, rel=0.05)


def test_no_more_than_three_are_measured_again(monkeypatch: pytest.MonkeyPatch) -> None:
    first = {f"c{k}": 200.0 + 10 * k for k in range(1, 6)}
    decision, built = decided(first, {name: 700.0 - 50 * int(name[1:]) for name in first}, monkeypatch)
    assert built == ["c1", "c2", "c3"]
    assert decision.winner == Variant("c3")


def test_one_whose_first_times_do_not_stand_above_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    decision, built = decided({"c1": 200.0, "c2": 205.0}, {"c1": 204.0, "c2": 100.0}, monkeypatch)
    assert built == ["c1"]
    assert decision.winner == Variant("c1")


@pytest.mark.parametrize(("third", "action"), [(240.0, "change"), (1000.0, "undecided")])
def test_of_several_that_do_not_keep_their_gain_three_are_measured_again(
    third: float, action: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    second = {"c1": 1000.0, "c2": 1000.0, "c3": third, "c4": 260.0}
    decision, built = decided({"c1": 200.0, "c2": 220.0, "c3": 240.0, "c4": 260.0}, second, monkeypatch)
    assert built == ["c1", "c2", "c3"]
    assert decision.verdict.action == action
    assert decision.winner == Variant("c3")
