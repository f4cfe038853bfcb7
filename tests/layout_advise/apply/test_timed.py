"""How many processes both programs are timed in: against the interval that came out."""

from __future__ import annotations

import itertools
import random
import subprocess
from pathlib import Path

import pytest

from layout_advise.apply.timed import Rounds, exactly, in_turn, timed
from layout_advise.apply.trees import SourceTree


def ratio(rounds: Rounds, spread: float) -> tuple[int, float]:
    """How many processes there were of a program and one that is twice as fast, and the interval's width."""
    machine, seen = random.Random(5), itertools.count()

    def pair() -> tuple[float, float]:
        next(seen)
        return 2 + machine.uniform(0, spread), 1 + machine.uniform(0, spread)

    found = in_turn(pair, rounds)
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
    assert in_turn(lambda: next(times), Rounds()) is None


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
