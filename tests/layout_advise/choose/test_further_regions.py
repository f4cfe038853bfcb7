"""Regions that are looked at where one gives no answer, on chains of samples and on a program."""

from __future__ import annotations

import subprocess

import pytest

from layout_advise.choose.further_regions import callers, key_of, others, share_beside
from layout_advise.choose.profile import Profiled, Sampled, profile
from layout_advise.config import Settings
from layout_advise.tracer.program.binary import ElfBinary

PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>
struct p { double x, v, rest[6]; };
__attribute__((noipa)) double leaf(struct p *q)
{
    for (int k = 0; k < 4; k++)
        q->x = q->v + q->x / (1 + q->v);
    return q->x;
}
__attribute__((noipa)) double often(struct p *ps, long n)
{
    double s = 0;
    for (long i = 0; i < n; i++)
        s += leaf(ps + i);
    return s;
}
__attribute__((noipa)) double aside(struct p *ps, long n)
{
    double s = 0;
    for (long i = 0; i < n; i++)
        s += ps[i].rest[0] / (1 + ps[i].rest[1]);
    return s;
}
int main(int argc, char **argv)
{
    long n = 1000, rounds = atol(argv[1]);
    struct p *ps = calloc(n, sizeof *ps);
    double s = 0;
    for (long r = 0; r < rounds; r++) {
        s += often(ps, n);
        s += aside(ps, n);
    }
    printf("%g\n", s);
}
"""


@pytest.fixture(scope="module")
def sampled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Profiled, ElfBinary]:
    folder = tmp_path_factory.mktemp("regions")
    (folder / "main.c").write_text(PROGRAM)
    subprocess.run(["gcc", "-g", "-O2", "-o", folder / "main", folder / "main.c"], check=True)
    main = ElfBinary.open_module(folder / "main")
    settings = Settings((str(folder / "main"), "60000"), folder / "run", hotspot="leaf", timeout=120)
    return profile(settings, main, None, folder / "output"), main


def test_what_calls_a_short_leaf_is_next(sampled: tuple[Profiled, ElfBinary]) -> None:
    leaf, main = sampled
    (caller,) = callers(leaf, main)
    assert caller.title == "often"
    assert caller.share >= leaf.share


def test_other_hot_functions_are_looked_at_the_hottest_first(sampled: tuple[Profiled, ElfBinary]) -> None:
    leaf, main = sampled
    found = [one.title for one in others(leaf, main)]
    assert set(found) == {"often", "aside"}
    ranked = [hot.symbol for hot in leaf.ranking if hot.symbol in found]
    assert found == ranked


def test_what_was_passed_over_beside_the_region_told(sampled: tuple[Profiled, ElfBinary]) -> None:
    leaf, main = sampled
    (often,) = callers(leaf, main)
    aside = next(one for one in others(leaf, main) if one.title == "aside")
    assert share_beside(often, [leaf], main) == 0.0  # what it calls is in it
    assert 0 < share_beside(often, [aside, leaf], main) == share_beside(leaf, [aside], main) < 1
    assert share_beside(aside, [leaf, often], main) >= share_beside(aside, [leaf], main)
    assert len({key_of(one) for one in (leaf, often, aside)}) == 3


def test_the_regions_are_of_one_run(sampled: tuple[Profiled, ElfBinary]) -> None:
    leaf, main = sampled
    seen = Sampled.of(leaf, main)
    assert all(one.chains is leaf.chains and one.ranking is leaf.ranking for one in callers(leaf, main))
    assert seen.function_of(leaf.ranking[0], main) is not None
