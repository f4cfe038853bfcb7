"""The order in which a program enters places of its code, against what its source says."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from layout_advise.errors import ProgramError
from layout_advise.layoutalgebra.sets.nests import expand
from layout_advise.tracer.process.patching import Entry, Outlined
from layout_advise.tracer.sampling.entry_order import EntryOrder, entry_order, why_not_logged
from tests.support.tracing.parked_programs import entry_of

PROGRAM = r"""
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
volatile double sink;
#define REGION __attribute__((noipa, noinline)) double
REGION first(double x) { return sink * x + 1.0; }
REGION second(double x, long n) { for (long i = 0; i < n; i++) sink += x / (i + 1); return sink; }
REGION third(double x) { sink = x > 1 ? x / 2 : x * 3; return sink - x; }
REGION last(double x, double y) { return x * y + sink; }
static void *thread(void *n) { for (int k = 0; k < 50; k++) sink += first(k); return n; }
int main(int argc, char **argv)
{
    int turns = argc > 1 ? atoi(argv[1]) : 30;
    double x = 3.25;
    last(x, x);
    for (int k = 0; k < turns; k++) {
        x += first(x) / 1e6;
        for (int j = 0; j < 3; j++) x += second(x, 5) / 1e9;
        x += third(x) / 1e6;
    }
    if (argc > 2 && argv[2][0] == 't') { pthread_t t; pthread_create(&t, NULL, thread, NULL); pthread_join(t, NULL); }
    if (argc > 2 && argv[2][0] == 'f' && !fork()) { for (int k = 0; k < 9; k++) first(x); _exit(0); }
    if (argc > 2 && argv[2][0] == 'r') for (int k = 0; k < turns; k++) if (rand() % 3) first(x); else third(x);
    wait(NULL);
    printf("%.17g\n", x);
}
"""
NAMES = ("first", "second", "third", "last")


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("order")
    (folder / "p.c").write_text(PROGRAM)
    subprocess.run(["gcc", "-O2", "-g", "-pthread", "-o", str(folder / "p"), str(folder / "p.c")], check=True)
    return folder / "p"


def logged(program: Path, *arguments: str, most: int = 1 << 20) -> EntryOrder:
    places = [entry_of(program, name) for name in NAMES]
    assert [why_not_logged(place, places[0]) for place in places[1:]] == ["", "", ""]
    return entry_order([str(program), *arguments], places, most=most, timeout=60)


def test_the_order_is_that_of_the_source(program: Path) -> None:
    found = logged(program)
    assert found.nodes is not None
    assert list(expand(found.nodes)) == [3, *([0, 1, 1, 1, 2] * 30)]
    assert (found.counts, found.complete, found.threads) == ((30, 90, 30, 1), True, False)


def test_entries_of_other_threads_and_of_children_are_not_in_it(program: Path) -> None:
    threads, children = logged(program, "4", "t"), logged(program, "4", "f")
    assert threads.counts == children.counts == (4, 12, 4, 1)
    assert (threads.threads, children.threads) == (True, False)


def test_an_order_of_chance_does_not_fold_and_is_counted(program: Path) -> None:
    found = logged(program, "3000", "r")
    assert found.nodes is None
    assert sum(found.counts) == 1 + 5 * 3000 + 3000


def test_a_full_log_ends_the_program(program: Path) -> None:
    found = logged(program, "100000000", most=1000)
    assert not found.complete
    assert sum(found.counts) == 1000


def test_places_that_cannot_be_watched_say_why(program: Path) -> None:
    first, other = entry_of(program, "first"), entry_of(program, "second")
    assert "another file" in why_not_logged(replace(other, path=Path("/usr/lib/other.so")), first)
    assert "parallel region" in why_not_logged(replace(other, outlined=Outlined(program, 0)), first)
    short = Entry(program, other.address, b"\xc3", "ret")
    assert "cannot be moved" in why_not_logged(short, first)
    with pytest.raises(ValueError, match="places"):
        entry_order([str(program)], [first] * 9)
    with pytest.raises(ProgramError, match="cannot watch first"):
        entry_order(["/bin/true"], [first], timeout=60)
