"""What is timed and told of several: no build of the unchanged layout twice, a batch unless it tells nothing."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import pytest

from layout_advise.build import stage
from layout_advise.build.mockups import Mockup
from layout_advise.build.stage import held_against, reached_alike, reached_as, worth_timing
from layout_advise.choose.call_kinds import Kind
from layout_advise.config import Settings
from layout_advise.describe.checks import Conditions, quality
from layout_advise.describe.studied import InBatches, MoreWays, Studied
from layout_advise.layoutalgebra.derive.structure import Candidate, Dim, Relayout, Structure
from layout_advise.measure.contest import controls
from layout_advise.mockup.timing.variants import IDENTITY, IDENTITY_BLOCKS, SCALAR, Variant, reindexed_for
from layout_advise.observe.case import Case
from layout_advise.observe.find_kinds import Kinds
from layout_advise.propose.recipes import Recipe
from layout_advise.regions import one as region
from layout_advise.regions.run_seconds import RunTime
from layout_advise.reports.model.hotspot import Verdict
from layout_advise.verify.verify import Finding
from tests.support.sample_report import report

C1 = Variant("c1")


def compiled(folder: Path, name: object, value: int) -> Path:
    target = folder / f"{name}.so"
    source = f"int run(void) {{ return {value}; }}"
    subprocess.run(["gcc", "-shared", "-fPIC", "-x", "c", "-", "-o", target], input=source, text=True, check=True)
    return target


@pytest.mark.parametrize(("value", "timed"), [(1, {IDENTITY}), (2, {IDENTITY, SCALAR})])
def test_a_scalar_identity_that_is_the_same_program_is_not_timed(value: int, timed: set[Variant], tmp_path: Path) -> None:
    """By where it lies it could be taken to be faster "without vector instructions"."""
    values = {IDENTITY: 1, SCALAR: value}
    made = {n: Mockup(Recipe(n), "", compiled(tmp_path, n, v), None, None) for n, v in values.items()}
    assert set(controls(made, {n: Finding(None) for n in made}, compared=True, kernel="run")) == timed


def laid_out(*ids: str, chosen: object = None) -> Candidate:
    known = [Structure(name, name, 4096, 640, (Dim(10, 64),), ()) for name in ids]
    return Candidate("c1", tuple(Relayout(s, (), (), (), "", chosen=cast("Any", chosen)) for s in known), (), ())


def test_each_layout_is_held_against_the_unchanged_one_that_is_reached_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """minisat: the unchanged layout in memory of its own takes 4 % more, though no address is divided (decision 148)."""
    one, both = frozenset({"s1"}), frozenset({"s1", "s2"})
    items = {
        "c1": (laid_out("s1", "s2"), one),  # divides addresses of s1 only
        "c2": (laid_out("s1", "s2"), frozenset[str]()),
        "c3": (laid_out("s3", chosen="the elements of a call"), frozenset[str]()),  # the elements of one call
    }
    made = {
        Variant(name): Mockup(Recipe(Variant(name), layout), "", Path(f"{name}.so"), None, None, translated=divided)
        for name, (layout, divided) in items.items()
    }
    assert [reached_as(one) for one in made.values()] == [one, both, frozenset()]
    assert reached_as(replace(made[C1], path=None, translated=frozenset())) == frozenset()
    plain = replace(made[C1], translated=frozenset())
    monkeypatch.setattr(stage, "_reached", lambda names, variant, *rest, begins: {variant: plain})
    built = reached_alike(made, cast("Any", None), Path())
    assert list(built) == [reindexed_for(one), reindexed_for(both)]
    assert [held_against(m, built) for m in made.values()] == [one, both, frozenset()]
    second = made[Variant("c2")]
    promised = replace(second, recipe=Recipe(Variant("c2", "restrict"), second.recipe.candidate))
    assert held_against(promised, built) == frozenset()  # fasttree: it has vectors, and the unchanged layout has not
    monkeypatch.setattr(stage, "_reached", lambda names, variant, *rest, begins: {variant: made[C1]})
    divided = reached_alike(made, cast("Any", None), Path())
    assert list(divided) == [reindexed_for(one)]  # that divides, and c2 does not
    assert [held_against(m, divided) for m in made.values()] == [one, frozenset(), frozenset()]
    monkeypatch.setattr(stage, "_reached", lambda names, variant, *rest, begins: {})
    assert not reached_alike(made, cast("Any", None), Path())


def test_beside_the_winner_nothing_is_timed_that_is_the_same_program(tmp_path: Path) -> None:
    values = {IDENTITY: 1, IDENTITY_BLOCKS: 1, SCALAR: 1, C1.scalar: 2, C1: 2}
    built = {name: compiled(tmp_path, name, value) for name, value in values.items()}
    assert set(worth_timing(built, C1, "run")) == {IDENTITY, C1}
    built[IDENTITY_BLOCKS] = compiled(tmp_path, "other", 3)
    built[C1.scalar] = compiled(tmp_path, "scalar", 4)
    assert set(worth_timing(built, C1, "run")) == set(values)
    again = compiled(tmp_path, "again", 2)  # what reads again where that makes no difference
    assert set(worth_timing({**built, C1.reread: again}, C1, "run")) == set(values)
    assert C1.reread in worth_timing({**built, C1.reread: compiled(tmp_path, "another", 5)}, C1, "run")


def studied(reason: str) -> Studied:
    verdict = Verdict("undecided", None, None, reason, "Undecided: so it is.")
    return Studied(report(verdict).hotspots[0], Conditions(None, None, 0.0, None, False, None, 0, None), complete=True)


def test_a_batch_of_which_nothing_could_be_measured_tells_less_than_one_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sparse matrix times two vectors in turn: no layout of its entries could be made for 16 calls, for one it could."""
    one = replace(studied("not-in-situ"), retry=InBatches())
    nothing = cast(Any, None)
    case = Case(Settings(("./app",), Path("run")), nothing, nothing, nothing, nothing, None, nothing)
    monkeypatch.setattr(region, "in_batches", lambda case, studied: case)

    def told(batch: Studied | None) -> Studied | None:
        monkeypatch.setattr(region, "study", lambda case: batch)
        return region.study_again(case, one, RunTime())[1]

    assert told(studied("nothing-measured")) == one
    assert told(studied("no-rule-applies")) == one  # two buffers that are swapped: one reference touches both
    assert told(studied("structure-unclear")) == one
    assert told(batch := studied("no-gain")) == batch
    assert told(None) is None


def test_calls_that_use_other_memory_are_no_sign_of_another_course() -> None:
    """A physics engine whose contacts grow: the program ran the same way each time, and its report denied it."""
    checks = {c.id: c for c in quality(Conditions(None, None, 0.0, None, False, None, 1, True, same_blocks=False)).checks}
    assert checks["deterministic"].ok
    assert not checks["same-blocks"].ok
    assert "other blocks of memory" in checks["same-blocks"].text
    assert "same-blocks" not in {c.id for c in quality(Conditions(None, None, 0.0, None, False, None, 1, True)).checks}


LOOP = """__attribute__((visibility("default"))) double run(const double *x, long n)
{ double s = 0; for (long i = 0; i < n; i++) if (x[i] < 0.5) s += x[i]; return s; }"""


def test_a_scalar_identity_of_the_same_instructions_is_not_timed(tmp_path: Path) -> None:
    """``scan`` has no vectors; a copy of its loop elsewhere took 1.4 times as long, and the report blamed missing ones."""
    made = {}
    for name, flags in {IDENTITY: (), SCALAR: ("-fpatchable-function-entry=24",)}.items():
        path = tmp_path / f"{name}.so"
        command = ["gcc", "-O2", *flags, "-shared", "-fPIC", "-x", "c", "-", "-o", str(path)]
        subprocess.run(command, input=LOOP, text=True, check=True)
        made[name] = Mockup(Recipe(name), "", path, None, None)
    assert set(controls(made, {n: Finding(None) for n in made}, compared=True, kernel="run")) == {IDENTITY}


def test_a_region_is_not_taken_up_for_ever_for_ways_that_calls_take(monkeypatch: pytest.MonkeyPatch) -> None:
    """box2d: a way that ends for another reason than that no call took it."""
    again = replace(studied("identity-not-verified"), retry=MoreWays(frozenset((16, 32))))
    looked: list[frozenset[int]] = []

    def study(case: Case, kinds: Kinds) -> Studied:
        looked.append(case.taken)
        known.append(kinds.found)
        return again

    monkeypatch.setattr(region, "study", study)
    monkeypatch.setattr(region, "at_kind", lambda case, kinds: replace(case, kinds=kinds))
    case, known = cast(Case, SimpleCase()), list[tuple[Kind, ...]]()
    assert region.study_again(case, again, RunTime())[1] is again
    assert looked == [frozenset((16, 32))]
    # brotli: its calls were of other kinds each time that it was taken up again
    kinds = (Kind(14, 0.8, 14, (14, 15), "calls like call 14"), Kind(5, 0.2, 5, (5, 6), "calls like call 5"))
    again = replace(again, retry=MoreWays(frozenset((48,)), kinds))
    left, _ = region.study_again(case, again, RunTime())
    assert (known, left.kinds) == ([(), kinds], kinds)


@dataclass(frozen=True)
class SimpleCase:
    kinds: tuple[Kind, ...] = ()
    taken: frozenset[int] = frozenset()
