"""Parts of benchmarks/lift_coverage.py: a program that is loaded like a library, functions found, lifted and run."""

from __future__ import annotations

import subprocess
from pathlib import Path
from types import ModuleType

import pytest

from tests.support.benchmark_scripts import script
from tests.support.lifting.runner import Trial, build_runner, load_base, run_jobs

PROGRAM = """
#include <math.h>
#include <stdio.h>
__attribute__((noinline)) double dot(const double *a, const double *b, int n)
{ double s = 0; for (int i = 0; i < n; i++) s += a[i] * b[i]; return s; }
int main(void) { double a[3] = {1, 2, 3}; printf("%g\\n", cos(dot(a, a, 3))); return 0; }
"""


@pytest.fixture(scope="module")
def coverage() -> ModuleType:
    return script("lift_coverage")


@pytest.fixture
def program(tmp_path: Path) -> Path:
    (tmp_path / "p.c").write_text(PROGRAM)
    path = tmp_path / "p"
    subprocess.run(["gcc", "-O2", "-fPIE", "-pie", "-o", str(path), str(tmp_path / "p.c"), "-lm"], check=True)
    return path


def test_a_programs_function_runs_like_a_librarys(coverage: ModuleType, program: Path, tmp_path: Path) -> None:
    library = coverage.as_library(program)
    assert library != program
    assert coverage.as_library(library) == library
    functions, looked = coverage.looping(library, 5)
    assert [f.name for f in functions] == ["dot"]
    assert looked >= len(functions)
    runner = build_runner(tmp_path)
    job, why = coverage.attempt(library, functions[0], load_base(runner, library), tmp_path, (), by_reference=False)
    assert job is not None, why
    (trials,) = run_jobs(runner, library, [job], tmp_path, seeds=48).values()
    assert {t.verdict for t in trials} <= {"agrees", "discarded", "same but for NaN"}
    assert sum(t.reached > 0 and t.verdict != "discarded" for t in trials) == job.enough


def test_libraries_that_a_file_is_linked_with(coverage: ModuleType, program: Path, tmp_path: Path) -> None:
    (tmp_path / "libm.so.6").touch()
    assert coverage.linked(program, [tmp_path]) == [tmp_path / "libm.so.6"]


def test_a_difference_is_not_counted_as_executed_well(coverage: ModuleType) -> None:
    runs = {
        "good": {"agree": 3, "nan": 0, "discarded": 0, "loop": 2, "changed": 0, "differs": []},
        "bad": {"agree": 3, "nan": 0, "discarded": 0, "loop": 2, "changed": 0, "differs": [{"seed": 1}]},
        "idle": {"agree": 0, "nan": 0, "discarded": 3, "loop": 0, "changed": 0, "differs": []},
    }
    one = {"library": "l", "language": "C", "functions": 9, "looked": 5, "sample": 4, "lifted": 3, "executed": runs}
    text = coverage.tables([{**one, "stops": {"f": "x87 fld"}}])
    assert "| l | C | 9 | 5 | 4 | 3 | 75 % | 2 | 1 | 1 |" in text
    assert "| 1 | x87 fld |" in text


def test_what_differs_counts_only_where_it_differs_again(coverage: ModuleType) -> None:
    def trial(seed: int, verdict: str) -> Trial:
        return Trial(seed, verdict, "returned", "returned", 0, 1, 8, 0)

    first = (trial(1, "agrees"), trial(2, "differs"), trial(3, "differs"), trial(4, "discarded"))
    again = (trial(2, "differs"), trial(3, "agrees"), trial(4, "differs"))
    assert [t.verdict for t in coverage.repeated(first, again)] == ["agrees", "differs", "agrees", "discarded"]
