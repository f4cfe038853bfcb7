"""The second order of a mock-up's loads: another program that does the same."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from layout_advise.build.code_places import moved
from layout_advise.build.mockups import LateLoads, Mockup, make_all, with_late
from layout_advise.build.stage import Built
from layout_advise.errors import SnapshotError
from layout_advise.layoutalgebra.derive.structure import Candidate
from layout_advise.measure import stage
from layout_advise.measure.stage import KindTimed
from layout_advise.mockup.timing.variants import IDENTITY, Variant
from layout_advise.propose.compiler import Compiled
from layout_advise.propose.recipes import Code, Recipe
from layout_advise.propose.source import Source
from layout_advise.verify import compare
from layout_advise.verify.compare import without_failed
from layout_advise.verify.verify import Finding, Subject
from tests.support.mockups.native import Rows, rows

C1 = Variant("c1")
FLAGS = ("-O3", "-march=haswell", "-ffp-contract=off")
PRESSURE = """
struct particle { double x, vx, m, q, P; };
void run(struct particle *p, long n)
{
    for (long i = 0; i < n; i++)
        p[i].P = 0.75 * p[i].P + p[i].m * p[i].vx * p[i].vx;
}
"""
ONE_LOAD = """
struct row { double a, b, c, d, e; };
void run(struct row *p, long n) { for (long i = 0; i < n; i++) p[i].a = p[i].a * 2; }
"""


def kernel(source: str, where: Path, used: tuple[int, ...] = (1, 2, 4)) -> Rows:
    work = np.random.default_rng(1).random((64, 5))
    return rows(source, work, used, where, FLAGS)


def made(one: Rows, layout: Candidate | None, where: Path, twin: Variant | None = None) -> Mockup:
    recipe = Recipe(IDENTITY if layout is None else C1, layout, checked=False)
    code = Code(one.lifted, one.lifted)
    source = Source(code, one.lifted, one.trace, (one.structure,), Compiled("gcc", FLAGS))
    built = {v: replace(m, same_as=twin) for v, m in make_all([recipe], source, source.compiler, where).items()}
    (found,) = with_late(built, source, source.compiler, where).values()
    assert found.path is not None, found.reason
    return found


@pytest.mark.parametrize("kind", ["identity", "soa"])
def test_the_other_order_does_the_same(kind: str, tmp_path: Path) -> None:
    one = kernel(PRESSURE, tmp_path)
    start = one.work.copy()
    found = made(one, one.layout(kind), tmp_path / "made")
    assert found.late is not None
    assert found.late.source != found.source
    assert sorted(found.late.source.split()) == sorted(found.source.split())
    for text, name in ((found.source, "first"), (found.late.source, "late")):
        one.work[:] = start
        assert one.made_by(text, tmp_path / f"{name}.so", FLAGS) == one.expected


def test_two_of_the_builds_at_other_places_have_it(tmp_path: Path) -> None:
    one = kernel(PRESSURE, tmp_path)
    found = made(one, one.layout("soa"), tmp_path / "made")
    assert found.late is not None
    built = moved((found,), "gcc")
    sources = [built[name].with_suffix(".c").read_text() for name in C1.elsewhere]
    assert sources == [found.source, found.late.source, found.late.source]


def test_there_is_none_where_it_is_the_same_and_of_the_machine_code_of_another_one(tmp_path: Path) -> None:
    for source, used, twin in ((ONE_LOAD, (0,), None), (PRESSURE, (1, 2, 4), IDENTITY)):
        where = tmp_path / f"{twin}"
        where.mkdir()
        assert made(kernel(source, where, used), None, where / "made", twin).late is None


def test_what_does_not_do_the_same_is_not_timed(tmp_path: Path) -> None:
    late = LateLoads("other", tmp_path / "late.so")
    item = Mockup(Recipe(C1), "one", tmp_path / "c1.so", None, None, late=late)
    good, bad, unknown = (
        without_failed({C1: item}, found)
        for found in ({C1.reordered: Finding(None)}, {C1.reordered: Finding("differs")}, {})
    )
    assert good[C1].late is late
    assert bad[C1].late is unknown[C1].late is None


@pytest.mark.parametrize(("short", "loads"), [(True, 4), (False, 3)])
def test_short_loops_are_compiled_as_a_source_is(short: bool, loads: int, tmp_path: Path) -> None:
    """particles at -O3: by hand gcc loads a vector twice, in either order of the source."""
    one = kernel(PRESSURE, tmp_path)
    recipe = Recipe(C1, one.layout("soa"), checked=False)
    compiler = Compiled("gcc", FLAGS, short)
    source = Source(Code(one.lifted, one.lifted), one.lifted, one.trace, (one.structure,), compiler)
    (found,) = make_all([recipe], source, source.compiler, tmp_path / "made").values()
    assert found.path is not None
    code = subprocess.run(["objdump", "-d", str(found.path)], capture_output=True, text=True, check=True).stdout
    read = re.findall(r"v(?:movu|mul|add)pd \S*\(%r\S+\),%ymm\d", code)
    assert len(read) == loads


@pytest.mark.parametrize("fails", [False, True])
def test_what_cannot_be_compared_is_not_timed(fails: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The comparison is one of its own, later than that of the mock-ups themselves, and a stop in it ends nothing else."""
    one = kernel(PRESSURE, tmp_path)
    layout = one.layout("soa")
    item = made(one, layout, tmp_path / "made")
    subjects: list[Subject] = []

    def found(space: object, program: object, source: object, given: Sequence[Subject]) -> dict[Variant, Finding]:
        subjects.extend(given)
        if fails:
            raise SnapshotError("the original cannot be run")
        return {C1.reordered: Finding(None)}

    monkeypatch.setattr(compare, "found_of", found)
    source = Source(Code(one.lifted, one.lifted), one.lifted, one.trace, (one.structure,), Compiled("gcc", FLAGS))
    kept = compare.compared_late(cast("Any", None), cast("Any", None), source, {C1: item})
    assert (kept[C1].late is None) == fails
    assert item.late is not None
    assert [(s.variant, s.mockup, s.check) for s in subjects] == [(C1.reordered, item.late.path, None)]


def test_the_other_order_is_made_of_the_winner_only_where_it_was_not_before(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, rebuilt = [], []

    def late(built: Built, variants: Collection[Variant]) -> Built:
        asked.append(tuple(variants))
        return replace(built, wanted=())

    def rebuild(space: object, built: Built, variant: Variant, others: object, *, places: bool) -> Built:
        rebuilt.append(built)
        return built

    monkeypatch.setattr(stage, "rebuild", rebuild)
    monkeypatch.setattr(stage, "time_built", lambda *_, **__: None)
    nothing = cast("Any", None)
    built = Built(nothing, (Recipe(C1),), {})
    case = cast("Any", SimpleNamespace(space=None))
    times = cast("Any", SimpleNamespace(contest=SimpleNamespace(compared_with=lambda variant: ())))
    known = KindTimed(case, built, times)
    for timed, places in ((replace(known, late=late), True), (replace(known, late=late), False), (known, True)):
        stage.measure_again(timed, C1, nothing, "steady", unrolled=False, places=places)
    assert asked == [(C1,)]
    assert [one.wanted for one in rebuilt] == [(), built.wanted, built.wanted]
