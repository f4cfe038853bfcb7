"""How many processes both programs are timed in: against the interval that came out."""

from __future__ import annotations

import itertools
import random
import subprocess
from pathlib import Path

import numpy as np
import pytest

from layout_advise.apply.region_times import ratio_of_calls, stretches
from layout_advise.apply.timed import Rounds, exactly, in_turn, timed
from layout_advise.apply.trees import SourceTree
from layout_advise.mockup.timing.statistics import undisturbed_ratio
from layout_advise.tracer.process.channel import MAX_TIMED


def ratio(rounds: Rounds, spread: float) -> tuple[int, float]:
    """How many processes there were of a program and one that is twice as fast, and the interval's width."""
    machine, seen = random.Random(5), itertools.count()

    def pair() -> tuple[float, float]:
        next(seen)
        return 2 + machine.uniform(0, spread), 1 + machine.uniform(0, spread)

    found = in_turn(pair, rounds, undisturbed_ratio)
    assert found is not None
    assert found.restores == next(seen)
    return found.restores, found.hi / found.lo


def test_processes_are_added_until_the_interval_is_as_narrow_as_it_is_to_be() -> None:
    assert ratio(Rounds(5, 40), 0.4)[0] == 5
    many, width = ratio(Rounds(5, 100, width=1.05), 0.2)
    assert 5 < many < 100
    assert width <= 1.05
    assert ratio(Rounds(5, 12, width=1.0001), 0.4)[0] == 12
    assert ratio(Rounds(5, 40, seconds=0.0, width=1.0001), 0.4)[0] == 5


@pytest.mark.parametrize("count", [1, 7])
def test_so_many_as_were_asked_for(count: int) -> None:
    assert ratio(exactly(count), 0.4)[0] == count


def test_without_times_there_is_no_ratio() -> None:
    times = iter([(2.0, 1.0), None])
    assert in_turn(lambda: next(times), Rounds(), undisturbed_ratio) is None


def calls(seed: int, speed: float, interrupted: int = 3) -> np.ndarray:
    """Two thousand calls, of which one in ten takes a hundred times as long as the others, and a few are interrupted."""
    machine = np.random.default_rng(seed)
    times = np.where(np.arange(2000) % 10 == 0, 2000.0 / speed, 20.0) * machine.uniform(1.0, 1.02, 2000)
    times[machine.integers(2000, size=interrupted)] += 50_000.0
    return times


def test_the_slow_calls_of_a_region_count_by_their_time() -> None:
    """earcut: the quick half of its calls was as fast in another layout, 1.02; the program took 1.15 times as long."""
    found = ratio_of_calls([calls(k, 1.0) for k in range(5)], [calls(k + 5, 0.8) for k in range(5)])
    assert found.median == pytest.approx(0.82, abs=0.01)
    assert found.lo > 0.80
    assert found.hi < 0.84


def test_stretches_of_calls_come_from_all_over_the_run() -> None:
    assert stretches(100, 9) == (1,)
    assert stretches(MAX_TIMED, 9) == (1,)
    assert stretches(10 * MAX_TIMED, 9) == (1, 1 + 3 * MAX_TIMED, 1 + 6 * MAX_TIMED, 1 + 9 * MAX_TIMED)
    assert stretches(10 * MAX_TIMED, 2) == (1, 1 + 9 * MAX_TIMED)
    assert stretches(10 * MAX_TIMED, 0) == (1,)
    assert stretches(MAX_TIMED + 5, 9) == (1, 6)


READS_A_FILE = """#include <stdio.h>
volatile double sum;
__attribute__((noinline)) void work(long n) { for (long i = 0; i < n; i++) sum += i * 0.5; }
int main(void)
{
    FILE *file = fopen("input", "r");
    long n;
    if (!file || fscanf(file, "%ld", &n) != 1)
        return 1;
    for (int k = 0; k < 100; k++)
        work(n);
    return 0;
}
"""


def test_calls_are_timed_in_the_trees(tmp_path: Path) -> None:
    """cadical's problem has a relative name: where the tool was called there was none, and its calls had no times."""

    def tree(name: str) -> SourceTree:
        root = tmp_path / name / "build"
        root.mkdir(parents=True)
        (root / "input").write_text("200000")
        subprocess.run(["gcc", "-g", "-O1", "-x", "c", "-", "-o", root / "app"], input=READS_A_FILE, text=True, check=True)
        return SourceTree(tmp_path / name, Path("build/app"), Path("build"), "")

    here = Path.cwd()
    achieved = timed(tree("old"), tree("new"), (), "work", exactly(1), tmp_path)
    assert achieved.region is not None, achieved.why
    assert Path.cwd() == here


OTHER_CALLS = READS_A_FILE.replace("k < 100", "k < COUNT")


def test_a_program_that_makes_other_calls_has_no_times_of_the_region(tmp_path: Path) -> None:
    def tree(name: str, count: int) -> SourceTree:
        root = tmp_path / name
        root.mkdir()
        (root / "input").write_text("20000")
        command = ["gcc", "-g", "-O1", f"-DCOUNT={count}", "-x", "c", "-", "-o", str(root / "app")]
        subprocess.run(command, input=OTHER_CALLS, text=True, check=True)
        return SourceTree(root, Path("app"), Path(), "")

    achieved = timed(tree("old", 100), tree("new", 140), (), "work", exactly(1), tmp_path)
    assert achieved.region is None
    assert "it is called 100 times, and 140 times in the rewritten program" in achieved.why


@pytest.mark.parametrize("n", [10, 200_000], ids=["short", "long"])
def test_all_calls_of_a_region_are_timed_where_there_are_few(n: int, tmp_path: Path) -> None:
    """potrace: of 2,469 short calls no time was taken, as 16,384 were waited for."""
    (tmp_path / "input").write_text(str(n))
    command = ["gcc", "-g", "-O1", "-x", "c", "-", "-o", str(tmp_path / "app")]
    subprocess.run(command, input=READS_A_FILE, text=True, check=True)
    tree = SourceTree(tmp_path, Path("app"), Path(), "")
    assert timed(tree, tree, (), "work", exactly(2), tmp_path).region is not None
