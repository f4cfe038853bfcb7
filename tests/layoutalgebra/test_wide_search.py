"""The wide search: distinct, deterministic, costed as the road costs, and optimal where all layouts can be tried."""

import itertools
import json
import math
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from layout_advise.errors import AlgebraError
from layout_advise.layoutalgebra.derive.structure import Candidate, Dim, Field, Relayout, Structure
from layout_advise.layoutalgebra.explore.cost_model import Walk, cost_of
from layout_advise.layoutalgebra.explore.partitions import all_partitions, first_partitions, neighbours
from layout_advise.layoutalgebra.explore.patterns import Shape
from layout_advise.layoutalgebra.explore.plans import AxisStep, Group, LayoutPlan
from layout_advise.layoutalgebra.explore.relayout import relayout
from layout_advise.layoutalgebra.explore.wide_search import search
from tests.support import slower
from tests.support.algebra_structures import is_injective
from tests.support.paths import ROOT


def structure(sizes: list[int], counts: tuple[int, ...], unused: int = 32, weights: tuple[int, ...] = (1,)) -> Structure:
    fields, place = [], 0
    for number, size in enumerate(sizes):
        place = -(-place // size) * size
        fields.append(Field(f"f{number}", place, size, None, 100 * weights[number % len(weights)], number % 2))
        place += size
    stride, dims = -(-place // 8) * 8 + unused, list[Dim]()
    for count in reversed(counts):
        dims.insert(0, Dim(count, stride))
        stride *= count
    return Structure("s0", "grid", 0, stride, tuple(dims), tuple(fields))


TWELVE = structure([8] * 12, (40, 50, 60))


def places(layout: Relayout) -> tuple[object, ...]:
    """The map by a few elements at the corners and in the middle, and the buffers' sizes."""
    dims = layout.structure.dims
    spots = itertools.product(*({0, 1, d.count // 2, d.count - 1} & set(range(d.count)) for d in dims))
    return (
        tuple((m.buffer, m.place(index)) for index in sorted(spots) for m in layout.fields),
        tuple(b.bytes for b in layout.buffers),
    )


def test_a_thousand_distinct_layouts_of_twelve_fields() -> None:
    found = search(TWELVE, budget=1000)
    assert len(found) == 1000
    assert len({places(c.relayouts[0]) for c in found}) == 1000
    assert [c.cost["cycles"] for c in found] == sorted(c.cost["cycles"] for c in found)
    assert [c.id for c in found[:2]] == ["w1", "w2"]
    assert search(TWELVE, budget=1000) == found
    assert search(TWELVE, budget=10) == found[:10]
    assert len({len(c.relayouts[0].buffers) for c in found}) >= 5
    assert {"soa", "split", "aosoa", "permute", "compact"} <= {f for c in found for f in c.families}


@pytest.mark.parametrize("walk", [Walk(2), Walk(0), Walk(1, gathered=True)], ids=["inner", "outer", "gathered"])
def test_costs_are_those_of_the_road(walk: Walk) -> None:
    case = structure([8, 4, 4, 8, 2, 8, 1], (6, 5, 9), weights=(5, 1, 3))
    before = cost_of(case, walk, 32)["cycles"]
    for candidate in search(case, walk=walk, budget=150):
        assert candidate.cost["cycles"] == pytest.approx(cost_of(candidate.relayouts[0], walk, 32)["cycles"])
        assert candidate.cost["relative"] == pytest.approx(candidate.cost["cycles"] / before)


def every_layout(case: Structure, lanes: tuple[int, ...]) -> list[Relayout]:
    """All partitions, orders, places of the field axis and blocks, written out from the words of the definition."""
    count, dims = len(case.fields), range(len(case.dims))
    partitions = {
        tuple(sorted(tuple(n for n in range(count) if owner[n] == k) for k in set(owner)))
        for owner in itertools.product(range(count), repeat=count)
    }
    shapes: list[tuple[list[AxisStep], list[AxisStep]]] = []
    for order in itertools.permutations(AxisStep(d) for d in dims):
        shapes.extend((list(order[:place]), list(order[place:])) for place in range(len(order) + 1))
        for block in {v // f.bytes for v in lanes for f in case.fields if v > f.bytes}:
            for k, step in enumerate(order):
                if case.dims[step.dim].count > block:
                    outer = [*order[:k], AxisStep(step.dim, "div", block), *order[k + 1 :]]
                    shapes.append((outer, [AxisStep(step.dim, "mod", block)]))
    return [
        relayout(case, LayoutPlan(tuple(Group(fields, tuple(outer), tuple(inner)) for fields in groups)))
        for groups in partitions
        for outer, inner in shapes
    ]


@pytest.mark.parametrize("examples", [4, *slower((12,))])
def test_the_first_is_the_optimum_up_to_four_fields(examples: int) -> None:
    @settings(max_examples=examples)
    @given(
        st.lists(st.sampled_from([1, 2, 4, 8]), min_size=1, max_size=4),
        st.lists(st.integers(2, 9), min_size=1, max_size=2),
        st.integers(0, 1),
        st.booleans(),
    )
    def is_first(sizes: list[int], counts: list[int], fastest: int, gathered: bool) -> None:
        case = structure(sizes, tuple(counts))
        walk = Walk(min(fastest, len(counts) - 1), gathered)
        best = min(cost_of(layout, walk, 32)["cycles"] for layout in every_layout(case, (16, 32)))
        assert search(case, walk=walk, budget=5)[0].cost["cycles"] == pytest.approx(best)

    is_first()


@pytest.mark.slow
def test_the_first_is_the_optimum_for_five_fields() -> None:
    case, walk = structure([8, 4, 8, 1, 4], (7, 9), weights=(1, 4, 2)), Walk(0)
    found = search(case, walk=walk, budget=10_000)
    every = every_layout(case, (16, 32))
    assert found[0].cost["cycles"] == pytest.approx(min(cost_of(layout, walk, 32)["cycles"] for layout in every))
    assert {places(c.relayouts[0]) for c in found} == {places(layout) for layout in every}  # nothing is left out


def test_layouts_are_injective_and_told_by_their_terms() -> None:
    case = structure([8, 4, 4, 2, 8, 1], (3, 4, 5))
    for candidate in search(case, budget=200)[::7]:
        assert is_injective(candidate.relayouts[0])
        check_names(candidate)


def check_names(candidate: Candidate) -> None:
    layout = candidate.relayouts[0]
    buffers, fields = len(layout.buffers), len(layout.structure.fields)
    assert ("soa" in candidate.families) == (buffers == fields)
    assert ("split" in candidate.families) == (1 < buffers < fields)
    assert ("aosoa" in candidate.families) == (candidate.block is not None) == ("5" in candidate.derivation)
    assert {name for part in layout.parts for name in part.fields} == {f.name for f in layout.structure.fields}
    assert layout.term


def test_patterns_keep_what_matches() -> None:
    blocks = search(TWELVE, patterns=["* ⊗ A_8"], budget=200)
    assert all(axes_end_in_multiple(c, 8) for c in blocks)
    complex_numbers = search(TWELVE, patterns=["* ⊗ A ⊗ S_2"], budget=200)
    assert len(complex_numbers) >= 100
    for candidate in complex_numbers:
        layout = candidate.relayouts[0]
        if "complex" in candidate.families:  # the parts side by side behind other dimensions or in blocks
            pairs = zip(layout.fields[::2], layout.fields[1::2], strict=True)
            assert all((a.buffer, a.offset + 8, a.axes) == (b.buffer, b.offset, b.axes) for a, b in pairs)
            assert all(min(axis.stride for axis in m.axes) == 16 for m in layout.fields)
            continue
        assert len(layout.buffers) == 6
        for buffer in range(6):
            starts = sorted(m.offset for m in layout.fields if m.buffer == buffer)
            assert starts == [0, 8]
    both = search(TWELVE, patterns=["A ⊗ A ⊗ A", "A ⊗ A ⊗ A ⊗ S"], budget=50)
    assert all(c.block is None for c in both)


def axes_end_in_multiple(candidate: Candidate, of: int) -> bool:
    layout = candidate.relayouts[0]
    for one in layout.fields:
        last = min((a for a in one.axes), key=lambda a: a.stride)
        extent = last.block if last.part == "mod" else layout.structure.dims[last.dim].count
        if last.stride != layout.structure.fields[one.field].bytes or extent % of:
            return False
    return True


WRONG = [
    ("* ⊗ B", "column 5"),
    ("", "not a pattern"),
    ("A ⊗", "not a pattern"),
    ("A_0", "size 0"),
    ("* * A", r"'\* \* A'"),
    ("A_x", "'A_x'"),
]


@pytest.mark.parametrize(("text", "why"), WRONG)
def test_patterns_that_are_none_are_refused(text: str, why: str) -> None:
    with pytest.raises(AlgebraError, match=why):
        Shape.parse(text)


def test_searches_that_cannot_be_are_refused() -> None:
    with pytest.raises(AlgebraError, match="at least 1"):
        search(TWELVE, budget=0)
    with pytest.raises(AlgebraError, match="no layout matches"):
        search(TWELVE, patterns=["* ⊗ S_13"])
    inexact = Structure("s0", "x", 0, 80, (Dim(10, 8),), TWELVE.fields[:1], inexact="the trace is truncated")
    with pytest.raises(AlgebraError, match="the trace is truncated"):
        search(inexact)
    with pytest.raises(AlgebraError, match="no accessed field"):
        search(Structure("s0", "x", 0, 80, (Dim(10, 8),), ()))


def test_partitions() -> None:
    assert [len(all_partitions(n)) for n in range(1, 6)] == [1, 2, 5, 15, 52]  # Bell numbers
    for parts in (all_partitions(4), first_partitions(TWELVE.fields, (2,)), list(neighbours(((0, 1), (2, 3), (4,))))):
        total = sum(map(len, parts[0]))
        assert all(sorted(n for g in p for n in g) == list(range(total)) for p in parts)
        assert all(p == tuple(sorted(p)) and all(g == tuple(sorted(g)) and g for g in p) for p in parts)
    assert math.comb(4, 2) + 1 <= len(set(neighbours(((0, 1), (2, 3)))))


@pytest.mark.parametrize("row", ["import", "board", "search", "rewrite"])
def test_the_benchmark_runs(row: str) -> None:
    script = ROOT / "benchmarks" / "algebra.py"
    run = subprocess.run([sys.executable, str(script), "--row", row], capture_output=True, text=True, check=True)
    assert json.loads(run.stdout)["mb"] < 100  # what the checkerboard may take
