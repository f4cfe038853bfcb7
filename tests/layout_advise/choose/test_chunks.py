"""Which loop is studied in chunks of its iterations, and how long these are, on a program that is known."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from layout_advise.choose.calls import ChosenCall
from layout_advise.choose.chunks import SHORTER, find_chunk
from layout_advise.choose.policy import CHOOSE
from layout_advise.choose.probed_calls import probe_calls
from layout_advise.choose.profile import Profiled, profile
from layout_advise.config import Settings
from layout_advise.tracer.program.binary import ElfBinary
from layout_advise.tracer.sampling.probe import Probe

PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>
__attribute__((noipa)) double rows(const double *value, const int *column, const double *x, double *y, long n)
{
    double all = 0;
    for (long i = 0; i < n; i++) {
        double sum = 0;
        for (long k = 8 * i; k < 8 * i + i % 9; k++)
            sum += value[k] * x[column[k]];
        y[i] = sum;
        all += sum;
    }
    return all;
}
int main(int argc, char **argv)
{
    long n = atol(argv[1]), rounds = atol(argv[2]);
    double *value = calloc(8 * n, sizeof *value), *x = calloc(n, sizeof *x), *y = calloc(n, sizeof *y), all = 0;
    int *column = calloc(8 * n, sizeof *column);
    for (long k = 0; k < 8 * n; k++)
        column[k] = k * 7919 % n;
    for (long r = 0; r < rounds; r++)
        all += rows(value, column, x, y, n);
    printf("%g\n", all);
}
"""
N, ROUNDS = 200_000, 3


@pytest.fixture(scope="module")
def sampled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Settings, ElfBinary, Profiled]:
    folder = tmp_path_factory.mktemp("chunks")
    (folder / "main.c").write_text(PROGRAM)
    subprocess.run(["gcc", "-g", "-O2", "-o", folder / "main", folder / "main.c"], check=True)
    main = ElfBinary.open_module(folder / "main")
    settings = Settings((str(folder / "main"), str(N), str(ROUNDS)), folder / "run", hotspot="rows", timeout=120)
    return settings, main, profile(settings, main, None, folder / "output")


def as_long(
    sampled: tuple[Settings, ElfBinary, Profiled], iteration_ns: float
) -> tuple[Settings, ElfBinary, Profiled, None]:
    """As if each row took so long."""
    settings, main, found = sampled
    seconds = iteration_ns * N * ROUNDS / 1e9 / found.share
    return settings, main, replace(found, run=replace(found.run, cpu_seconds=seconds)), None


def test_the_outer_loop_is_taken_in_chunks_of_so_many_ns(sampled: tuple[Settings, ElfBinary, Profiled]) -> None:
    found = find_chunk(*as_long(sampled, 1000.0))
    assert not isinstance(found, str), found
    profiled, seen, chosen = found
    assert profiled.nest is not None
    assert profiled.nest.chunk == pytest.approx(CHOOSE.chunk_ns / 1000, rel=0.1)
    assert profiled.entry.chunk == profiled.nest.chunk
    assert profiled.region(0).chunk == profiled.nest.chunk
    assert seen.calls == seen.passages // profiled.nest.chunk
    assert chosen.calls == seen.calls


def test_a_chunk_has_no_more_iterations_than_it_may(sampled: tuple[Settings, ElfBinary, Profiled]) -> None:
    """Where the accesses of one are more than are recorded, a shorter one is looked for."""
    found = find_chunk(*as_long(sampled, 1000.0), most=1500)
    assert not isinstance(found, str), found
    assert found[0].entry.chunk == 1500


def test_iterations_longer_than_their_samples_tell_make_shorter_chunks(
    sampled: tuple[Settings, ElfBinary, Profiled], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of what a loop calls, samples may not show who called it: pykdtree's chunks took 150 ms for 10."""
    seen: list[int] = []

    def as_measured(settings: Settings, found: Profiled, stdin: Path | None) -> tuple[Probe, ChosenCall]:
        seen.append(found.entry.chunk)
        counted, chosen = probe_calls(settings, found, stdin)
        return counted, replace(chosen, in_situ_ns=16_000.0 * found.entry.chunk)

    monkeypatch.setattr("layout_advise.choose.chunks.probe_calls", as_measured)
    found = find_chunk(*as_long(sampled, 1000.0))
    assert not isinstance(found, str), found
    assert found[0].entry.chunk == seen[-1] == pytest.approx(seen[0] / 16, rel=0.1)


def test_a_loop_with_few_long_iterations_has_chunks_enough(sampled: tuple[Settings, ElfBinary, Profiled]) -> None:
    found = find_chunk(*as_long(sampled, 100.0))
    assert not isinstance(found, str), found
    assert found[0].nest is not None
    assert found[0].nest.chunk == found[1].passages // CHOOSE.fewest_chunks


def test_a_loop_that_is_left_soon_has_no_chunks(sampled: tuple[Settings, ElfBinary, Profiled]) -> None:
    """As many rows in a hundred times as many calls: each is over before a chunk is, and before a shorter one."""
    settings, main, found, _ = as_long(sampled, 100.0)
    often = replace(settings, command=(settings.command[0], str(N // 100), str(100 * ROUNDS)))
    assert "is left before" in str(find_chunk(often, main, found, None))


def test_of_a_loop_that_is_left_early_shorter_chunks_are_taken(
    sampled: tuple[Settings, ElfBinary, Profiled], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first chunk is as if more time passed between two chunks than in one."""
    settings, main, found, _ = as_long(sampled, 100.0)
    often = replace(settings, command=(settings.command[0], str(N // 10), str(10 * ROUNDS)))
    between = iter((1.5, 0.5))

    def as_measured(settings: Settings, found: Profiled, stdin: Path | None) -> tuple[Probe, ChosenCall]:
        counted, chosen = probe_calls(settings, found, stdin)
        return counted, replace(chosen, in_situ_ns=CHOOSE.chunk_ns, between_ns=next(between) * CHOOSE.chunk_ns)

    monkeypatch.setattr("layout_advise.choose.chunks.probe_calls", as_measured)
    shorter = find_chunk(often, main, found, None)
    assert not isinstance(shorter, str), shorter
    assert shorter[0].entry.chunk == shorter[1].passages // CHOOSE.fewest_chunks // SHORTER


@pytest.mark.parametrize(
    ("iteration_ns", "why"), [(1.0, "and counting it up to"), (100 * CHOOSE.chunk_ns, "an iteration takes")]
)
def test_iterations_that_are_too_short_or_too_long(
    sampled: tuple[Settings, ElfBinary, Profiled], iteration_ns: float, why: str
) -> None:
    found = find_chunk(*as_long(sampled, iteration_ns))
    assert isinstance(found, str)
    assert why in found


def test_iterations_of_which_no_time_is_known(sampled: tuple[Settings, ElfBinary, Profiled]) -> None:
    assert "is not known" in str(find_chunk(*as_long(sampled, 0.0)))


def test_only_the_clone_counts(sampled: tuple[Settings, ElfBinary, Profiled]) -> None:
    settings, main, found = sampled
    assert "by the clone" in str(find_chunk(replace(settings, backend="valgrind"), main, found, Path("/dev/null")))
