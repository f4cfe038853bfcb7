"""What is said of the benchmark's rows, counted by hand."""

from __future__ import annotations

import json
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from tests.support.benchmark_scripts import script
from tests.support.paths import ROOT


@pytest.fixture(scope="module")
def told() -> ModuleType:
    return script("summary")


def row(
    example: str,
    hand: float,
    predicted: float | None,
    identity: float | None = 1.0,
    verdict: str = "keep",
    reason: str = "no-gain",
) -> dict[str, Any]:
    error = predicted / hand - 1 if predicted else None
    named = {"example": example, "size": "small", "flags": "O2", "version": f"{example}_{hand}"}
    found = {"predicted": predicted, "error": error, "identity": identity, "verdict": verdict, "reason": reason}
    return {**named, "hand": hand, **found}


def test_each_target_is_counted(told: ModuleType) -> None:
    rows = [
        row("good", 2.0, 2.1, verdict="change"),
        row("good", 1.9, 1.8, verdict="change"),
        row("good", 3.0, None, verdict="change"),  # not proposed: no choice that was missed
        row("taken-wrongly", 0.9, 1.2, 1.2, verdict="change"),
        row("missed", 1.5, 0.9, None),
    ]
    lines = told.accuracy(told.configurations(rows))
    assert lines[0] == "identity within 5%: 1 of 3 (not missed small O2, taken-wrongly small O2)"
    assert lines[1] == "predicted against hand-written: median 19.3%, 90th percentile 38.0% of 4 rows"
    best = "the layout chosen is within 5% of the best that has a prediction"
    assert lines[2] == f"{best}: 1 of 3 (not missed small O2, taken-wrongly small O2)"
    assert lines[3] == "changes advised where nothing gains 3%: 1 (taken-wrongly small O2)"


def test_coverage_is_told_first(told: ModuleType) -> None:
    rows = [
        row("advised", 2.0, 2.1, verdict="change", reason="measured-gain"),
        row("advised", 3.0, None, verdict="change", reason="measured-gain"),
        row("kept", 1.3, None, reason="no-rule-applies"),
        row("kept", 1.2, None, reason="no-rule-applies"),
        row("open", 1.1, 1.0, verdict="undecided", reason="within-noise"),
        row("even", 1.09, 1.0),
    ]
    lines = told.summary(rows)
    assert lines[0] == "hand-written versions with a prediction: 3 of 6 (50%)"
    assert lines[1] == "without one, as all versions in a run that ended keep (no-rule-applies): 2 (kept_1.3 1, kept_1.2 1)"
    assert lines[2] == "without one, other layouts were measured, not this one: 1 (advised_3.0 1)"
    assert lines[3] == "configurations in which a hand-written version gains 10%: 3 of 4 (75%)"
    assert lines[4] == "no change advised in 2 of these"
    assert lines[5] == "  keep (no-rule-applies): 1 (kept small O2 kept_1.3 1.30)"
    assert lines[6] == "  undecided (within-noise): 1 (open small O2 open_1.1 1.10)"
    assert lines[7].startswith("identity within 5%")


def test_versions_that_no_run_can_predict_are_told_apart(told: ModuleType) -> None:
    """A changed loop is never proposed; vectors of 32 bytes need flags for them."""
    never = {**row("nbody", 3.0, None), "version": "nbody_lanes"}
    wide = {**row("kmeans", 3.0, None), "version": "kmeans_vectors"}
    assert told.why_unpredicted(never, [never]).startswith("no layout that the tool proposes")
    assert told.why_unpredicted(wide, [wide]) == "vectors wider than the flags allow"
    assert told.why_unpredicted({**wide, "flags": "O3-haswell"}, [wide]).startswith("as all versions in a run")


def test_errors_of_runs_that_the_tool_doubts_are_told_apart(told: ModuleType) -> None:
    rows = [row("sure", 2.0, 2.2), row("off", 1.0, 2.0, 1.3, "undecided", "identity-off")]
    lines = told.accuracy(told.configurations(rows))
    assert lines[1] == "predicted against hand-written: median 55.0%, 90th percentile 91.0% of 2 rows"
    assert lines[2].endswith("says that no figure counts: median 10.0%, 90th percentile 10.0% of 1 rows")


def test_rows_without_predictions_say_nothing_of_choices(told: ModuleType) -> None:
    lines = told.summary([row("none", 1.0, None)])
    assert "the layout chosen is within 5% of the best that has a prediction: 0 of 0" in lines
    assert not any("median" in line for line in lines)


def test_no_rows_give_a_summary(told: ModuleType) -> None:
    assert told.summary([])[0] == "hand-written versions with a prediction: 0 of 0"


def test_the_results_page_shows_the_summary_of_its_rows(told: ModuleType) -> None:
    """RESULTS.md holds what the script prints of the rows that it names."""
    accuracy, page = script("accuracy"), (ROOT / "benchmarks" / "RESULTS.md").read_text()
    files = sorted((accuracy.RESULTS / "amd-26-2").iterdir())
    rows = [row for file in files for row in json.loads(file.read_text())]
    for line in (*accuracy.table(rows).splitlines(), *told.summary(rows)):
        assert line in page


def test_configurations_have_their_own_files_and_threads() -> None:
    accuracy = script("accuracy")
    flags = [f for sets in accuracy.SETS.values() for f in sets]
    every = accuracy.settings(None, None, flags)
    assert len({s.file for s in every}) == len(every)
    assert {s.example for s in every} == set(accuracy.CASES)
    threaded = accuracy.settings(["wave_omp"], "large", flags)
    assert [(s.flags, s.threads) for s in threaded] == [(built, threads) for built in flags for threads in (1, 2)]
    assert [s.size_text for s in threaded[:2]] == ["large, 1 thread", "large, 2 threads"]
    assert threaded[1].environment["OMP_NUM_THREADS"] == "2"
    assert accuracy.settings(["wave"], "small", ["O2"])[0].size_text == "small"


def test_every_version_is_an_example() -> None:
    accuracy = script("accuracy")
    for name, case in script("cases").CASES.items():
        assert len(case.versions) >= 3
        for program in (name, *case.versions):
            assert (accuracy.EXAMPLES / name / f"{program}.c").is_file()


@pytest.mark.parametrize(("families", "fits"), [(("split", "compact"), True), (("aosoa", "split", "compact"), False)])
def test_groups_in_blocks_are_not_those_of_a_version_without(families: tuple[str, ...], fits: bool) -> None:
    """imaging: 0.70 was told for a version that gains 1.43."""
    candidate = SimpleNamespace(families=families, arrays=(("a", "b"), ("c",)))
    assert script("cases").grouped("a b", "c")(candidate) is fits
    assert not script("cases").grouped("a", "b c")(candidate)
