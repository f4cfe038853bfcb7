"""Parts of benchmarks/lift_coverage.py: a program that is loaded like a library, functions found, lifted and run."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.lift_runner import build_runner, load_base, run_jobs

PROGRAM = """
#include <math.h>
#include <stdio.h>
__attribute__((noinline)) double dot(const double *a, const double *b, int n)
{ double s = 0; for (int i = 0; i < n; i++) s += a[i] * b[i]; return s; }
int main(void) { double a[3] = {1, 2, 3}; printf("%g\\n", cos(dot(a, a, 3))); return 0; }
"""


@pytest.fixture(scope="module")
def coverage() -> ModuleType:
    path = Path(__file__).parent.parent / "benchmarks" / "lift_coverage.py"
    spec = importlib.util.spec_from_file_location("lift_coverage", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["lift_coverage"] = module
    spec.loader.exec_module(module)
    return module


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
