"""A program of functions of which each has the outcome that a test gives it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from layout_advise.choose.profile import Profiled
from layout_advise.config import Settings
from layout_advise.describe.checks import Conditions
from layout_advise.describe.studied import Studied
from layout_advise.errors import LayoutAdviseError
from layout_advise.observe.case import Case
from layout_advise.progress import Progress
from layout_advise.reasons import Reason
from layout_advise.regions import beside as side_by_side
from layout_advise.regions import looked as places
from layout_advise.regions import several as regions
from layout_advise.regions import whole
from layout_advise.regions.logged_order import LoggedOrder
from layout_advise.regions.looked import Told
from layout_advise.regions.one import RunContext
from layout_advise.regions.run_seconds import RunTime
from layout_advise.regions.several import study_regions
from layout_advise.regions.survey import Surveyed
from layout_advise.reports.model.hotspot import Verdict
from tests.support.sample_report import report

KEEP = Verdict("keep", None, None, Reason.NO_GAIN, "Keep it: none gains.")
NO_RULE = Verdict("keep", None, None, Reason.NO_RULE_APPLIES, "Keep it: no layout rule applies.")


def undecided(reason: str) -> Verdict:
    return Verdict("undecided", None, None, reason, "Undecided: so it is.")


class Road:
    """A program of functions, each with what comes of it; the order in which they were looked at."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, outcomes: dict[str, Verdict | LayoutAdviseError], share: float = 0.3
    ) -> None:
        self.outcomes, self.looked, self.takes = outcomes, list[str](), 0.0
        given = {"share": share, "nest": None, "threaded": False, "ranking": ()}
        self.regions = {name: cast(Profiled, SimpleNamespace(name=name, title=name, **given))
                        for name in outcomes}  # fmt: skip
        self.near: dict[str, list[str]] = {}
        self.instead: dict[str, str] = {}
        self.most_gain: dict[str, float] = {}
        self.without_times: set[str] = set()
        self.seconds: list[float | None] = []
        monkeypatch.setattr(places, "key_of", lambda one: (one.name, 0))
        monkeypatch.setattr(places, "others", lambda one, main: iter(self.regions.values()))
        monkeypatch.setattr(places, "callers", lambda one, main: iter(self.regions[n] for n in self.near.get(one.name, [])))
        monkeypatch.setattr(places, "loops_of", lambda case, least: ())
        monkeypatch.setattr(regions, "regions_beside", lambda start, one: (one,))
        for module in (regions, side_by_side):
            monkeypatch.setattr(module, "watch", self.watch)
            monkeypatch.setattr(module, "study_in_time", self.study_in_time)
        for module in (places, whole):
            monkeypatch.setattr(module, "share_beside", lambda told, passed, main: 0.3 * len(passed))

    def watch(self, start: RunContext, one: Profiled, end: float = 0.0) -> Any:
        self.looked.append(one.name)
        found = self.outcomes[one.name]
        if isinstance(found, LayoutAdviseError):
            raise found
        return case_of(self, self.instead.get(one.name, one.name))

    def study_in_time(self, case: Any, time: RunTime) -> tuple[Any, Studied]:
        verdict = self.outcomes[case.profiled.name]
        assert isinstance(verdict, Verdict)
        self.seconds.append(case.seconds)
        hotspot = msgspec.structs.replace(report(verdict).hotspots[0], most_gain=self.most_gain.get(case.profiled.name))
        if case.profiled.name in self.without_times:
            hotspot = msgspec.structs.replace(hotspot, candidates=())
        return case, Studied(hotspot, Conditions(None, None, 0.0, None, False, None, 0, None), took=self.takes)

    def run(self, time: RunTime | None = None, **settings: Any) -> Told | None:
        given = replace(Settings(("./app",), Path("run")), **settings)
        start = RunContext(given, cast(Any, None), None, cast(Any, None), Path(), Progress(quiet=True), time or RunTime())
        return study_regions(start, next(iter(self.regions.values())))


def beside(road: Road, monkeypatch: pytest.MonkeyPatch, surveyed: Surveyed) -> None:
    """The regions of ``road`` are wanted beside each other, and ``surveyed`` is what is known of them."""
    monkeypatch.setattr(regions, "regions_beside", lambda start, one: tuple(road.regions.values()))
    monkeypatch.setattr(regions, "survey", lambda start, wanted: surveyed)
    monkeypatch.setattr(side_by_side, "over_regions", lambda hotspots, alone, shared: ())
    monkeypatch.setattr(side_by_side, "log_order", lambda start, wanted: LoggedOrder(None))


def case_of(road: Road, name: str) -> Case:
    nothing = cast(Any, None)
    return Case(Settings(("./app",), Path("run")), nothing, road.regions[name], nothing, nothing, None, nothing)


def replace_action(verdict: Verdict) -> Verdict:
    return Verdict("change", "c1", 1.5, Reason.MEASURED_GAIN, verdict.text)
