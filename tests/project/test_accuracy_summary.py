"""What is said of the benchmark's rows, counted by hand."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

from tests.support.benchmark_scripts import script


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
    lines = told.summary(rows)
    assert lines[0] == "identity within 5%: 1 of 3 (not missed small O2, taken-wrongly small O2)"
    assert lines[1] == "predicted against hand-written: median 19.3%, 90th percentile 38.0% of 4 rows"
    assert lines[2] == "the layout chosen is within 5% of the best: 1 of 3 (not missed small O2, taken-wrongly small O2)"
    assert lines[3] == "changes advised where nothing gains 3%: 1 (taken-wrongly small O2)"


def test_errors_of_runs_that_the_tool_doubts_are_told_apart(told: ModuleType) -> None:
    rows = [row("sure", 2.0, 2.2), row("off", 1.0, 2.0, 1.3, "undecided", "identity-off")]
    lines = told.summary(rows)
    assert lines[1] == "predicted against hand-written: median 55.0%, 90th percentile 91.0% of 2 rows"
    assert lines[2].endswith("says that no figure counts: median 10.0%, 90th percentile 10.0% of 1 rows")


def test_rows_without_predictions_say_nothing_of_choices(told: ModuleType) -> None:
    lines = told.summary([row("none", 1.0, None)])
    assert [line for line in lines if "of 0" in line] == ["the layout chosen is within 5% of the best: 0 of 0"]
    assert not any("median" in line for line in lines)


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
