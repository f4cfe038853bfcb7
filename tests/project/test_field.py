"""The field: its list can be read, and what is held back stays so when programs are added."""

from __future__ import annotations

import importlib.util
from types import ModuleType

import msgspec
import pytest

from layout_advise.farm.listing import jobs_of, read_list
from layout_advise.reports.model.contract import PassedOver, Profile
from tests.support.paths import ROOT
from tests.support.sample_report import live, report

FIELD = ROOT / "benchmarks" / "field"


def script_of(name: str) -> ModuleType:
    """A script as a module."""
    spec = importlib.util.spec_from_file_location(name, FIELD / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_list_can_be_read() -> None:
    entries = read_list(FIELD / "field.toml")
    assert len(entries) >= 40
    assert {"C", "C++", "Fortran", "Rust"} <= {entry.language for entry in entries}
    assert all(entry.version and entry.kind and entry.fetch for entry in entries)
    assert len({job.id for job in jobs_of(entries, FIELD)}) >= len(entries)


def test_every_file_beside_the_list_is_used() -> None:
    """And named in `files`, so that a change of it is noticed."""
    used = {name for entry in read_list(FIELD / "field.toml") for name in entry.files}
    assert used == {str(path.relative_to(FIELD)) for part in ("drivers", "programs") for path in (FIELD / part).iterdir()}


def test_a_third_is_held_back_and_stays_so() -> None:
    script = script_of("held_back")
    names = script.names()
    drawn = script.held_back(names)
    assert len(drawn) == len(names) // 3
    assert all(len(set(names[start : start + 3]) & set(drawn)) == 1 for start in range(0, len(names) - 2, 3))
    assert script.held_back([*names, "more", "and", "more still"])[: len(drawn)] == drawn


def test_samples_count_once_by_what_became_of_their_region() -> None:
    whole = report()
    region = msgspec.structs.replace(whole.hotspots[0], share=0.5)
    nothing = msgspec.structs.replace(region, symbol="g", name="g", share=0.4, alone=0.25, candidates=())
    over = tuple(PassedOver(name, 0.9, "recursive", "Undecided.") for name in ("g", "h"))
    profile = tuple(Profile(name, 0.5, "app") for name in ("g", "h"))
    given = msgspec.structs.replace(whole, hotspots=(region, nothing), passed_over=over, profile=profile)
    found = script_of("samples").parts(given)
    reason = region.verdict.reason
    assert found == pytest.approx({"answered": 0.5, reason: 0.25, "passed over, recursive": 0.25, "not looked at": 0.0})


def test_programs_in_which_a_layout_ran_and_those_in_which_none_did() -> None:
    whole = report()
    (region,) = whole.hotspots
    first, *rest = region.candidates
    short = msgspec.structs.replace(live(), speedup=None, ns_original=None, ns_layout=None, untimed="too short", ended=7)
    ran = [
        msgspec.structs.replace(region, candidates=(msgspec.structs.replace(first, live=one), *rest))
        for one in (live(), short)
    ]
    none = msgspec.structs.replace(region, no_live="the region calls itself")
    found = {str(k): msgspec.structs.replace(whole, hotspots=(one,)) for k, one in enumerate([*ran, none])}
    timed, untimed, left = script_of("tried").table(found)[2:5]
    assert timed.split(" | ")[2:5] == ["330", "30", "24"]
    assert "–" not in timed.split(" | ")[5][:1]
    assert "(time over)" in untimed
    assert untimed.endswith("| too short |")
    assert left == "| 2 | – | 0 | | | | | the region calls itself |"
    assert script_of("tried").table(found)[-1].endswith("in 2 of 3.")
