"""Layouts that patterns and choices lead to: they are proposed, few, and their mock-ups leave the original's bytes."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from layout_advise.layoutalgebra.derive.chosen_elements import choose
from layout_advise.layoutalgebra.derive.structure import Candidate, Dim, Field, Structure
from layout_advise.layoutalgebra.explore.cost_model import Walk
from layout_advise.layoutalgebra.explore.explore import explore
from layout_advise.layoutalgebra.explore.traffic import lines_chosen
from tests.support.algebra_structures import chosen_of_blocks, is_injective
from tests.support.mockups.case import FLAGS, Case, f64_fields, verify

SQUARES = """
struct q { double re, im, scale_re, scale_im; };
void turn(struct q *a, long n) {
    for (long i = 0; i < n; i++) {
        double re = a[i].re * a[i].scale_re - a[i].im * a[i].scale_im;
        a[i].im = a[i].re * a[i].scale_im + a[i].im * a[i].scale_re;
        a[i].re = re;
    }
}"""
PICKED = """
struct c { double value, rate, rest[2]; };
void relax(struct c *cells, const int *chosen, long n) {
    for (long i = 0; i < n; i++) cells[chosen[i]].value += cells[chosen[i]].rate * (1.0 - cells[chosen[i]].value);
}"""
COLUMNS = """
struct w { double a[%d]; };
void columns(struct w *m, long rows, long n) {
    for (long j = 0; j < n; j++)
        for (long i = 0; i < rows; i++) {
            double sum = 0.0;
            %s
            m[i * n + j].a[0] = sum;
        }
}"""


def one(found: tuple[Candidate, ...], *families: str) -> Candidate:
    """The candidate of exactly these families, the only one."""
    (candidate,) = [c for c in found if set(c.families) == set(families)]
    assert all(is_injective(layout) for layout in candidate.relayouts)
    return candidate


@settings(max_examples=30)
@given(st.integers(2, 5), st.lists(st.integers(0, 4), min_size=8, max_size=30))
def test_chosen_elements_as_records_arrays_and_blocks(block: int, picks: list[int]) -> None:
    cells, walk = chosen_of_blocks(block, picks)
    assert walk.chosen is not None
    found = [c for c in explore([cells], walks={"s0": walk}, budget=100) if c.relayouts[0].chosen is not None]
    kinds = [tuple(f for f in c.families if f not in ("split", "compact", "pad")) for c in found]
    assert sorted(kinds) == [(), ("aosoa",), ("soa",)]
    assert kinds[0] == ()  # the simplest of equal ones first
    size = walk.chosen.block
    for candidate in found:
        (layout,) = candidate.relayouts
        assert is_injective(layout)
        places = [(m.buffer, m.place((k,))) for k in range(cells.count) if layout.holds((k,)) for m in layout.fields]
        assert lines_chosen(layout, walk.chosen) == len({(buffer, place // 64) for buffer, place in places})
        for index in range(cells.count):
            if layout.holds((index,)):
                first, second = (m.place((index,)) for m in layout.fields)
                number = index // size
                kind = candidate.block or 0
                wanted = {0: (16 * number, 16 * number + 8), 4: (64 * (number // 4) + 8 * (number % 4), None)}
                if "soa" in candidate.families:
                    wanted[0] = 8 * number, 8 * number
                assert first == wanted[kind][0]
                assert second == (first + 32 if kind else wanted[kind][1])


def test_complex_numbers_are_kept_together_in_blocks() -> None:
    size = 64
    fields = tuple(Field(f"{part}{k}", 16 * k + 8 * at, 8) for k in range(3) for at, part in enumerate(("re", "im")))
    waves = Structure("s0", "waves", 0, 50 * size, (Dim(50, size),), fields)
    found = explore([waves])
    candidate = one(found, "aosoa", "complex", "pad", "compact")
    (layout,) = candidate.relayouts
    assert layout.term == "A_13 ⊗ A_3 ⊗ A_4 ⊗ A_2"
    assert candidate.derivation == ("8", "5", "7", "4")
    assert [step.rule for step in layout.steps] == ["8", "5", "7", "5", "4"]
    assert layout.steps[0].term == "S_{0:50;52} ⊗ S_{0:6;8}"
    assert layout.steps[-1].term == "(S_{0:12;13} ⊗ A_3 ⊗ A_4 ⊗ A_2) ⊕ (S_{12;13} ⊗ A_3 ⊗ S_{0,1;4} ⊗ A_2)"
    for k, index in itertools.product(range(3), range(50)):
        re, im = (layout.fields[2 * k + at].place((index,)) for at in (0, 1))
        assert re == 192 * (index // 4) + 64 * k + 16 * (index % 4)
        assert im == re + 8
    assert explore([waves]) == found


def test_fields_that_are_no_pairs_stay_apart() -> None:
    fields = f64_fields(("a", 0), ("b", 8), ("c", 24), ("d", 40))
    loose = Structure("s0", "t", 0, 4800, (Dim(100, 48),), fields)
    assert not any("complex" in c.families for c in explore([loose]))


def test_a_pattern_beats_the_families_or_is_left_out() -> None:
    """The innermost loop goes over the rows, and 31 arrays are more streams than the prefetchers follow."""
    fields = tuple(Field(f"a{k}", 8 * k, 8, None, 5, 5) for k in range(31))
    rows = Structure("s0", "m", 0, 200 * 100 * 256, (Dim(200, 25600), Dim(100, 256)), fields)
    found = explore([rows], walks={"s0": Walk(0)})
    assert found[0].relayouts[0].term == "A_50 ⊗ A_100 ⊗ A_31 ⊗ A_4"
    assert found[0].cost["relative"] < 0.95 * found[1].cost["relative"]
    few = Structure("s0", "m", 0, 200 * 100 * 256, rows.dims, fields[:3])
    terms = [c.relayouts[0].term for c in explore([few], walks={"s0": Walk(0)})]
    assert "A_50 ⊗ A_100 ⊗ A_3 ⊗ A_4" not in terms
    assert len(terms) <= 10


@pytest.mark.parametrize("flags", FLAGS.values(), ids=FLAGS)
def test_a_mockup_in_blocks_of_complex_numbers(flags: tuple[str, ...], tmp_path: Path) -> None:
    case = Case(SQUARES, "turn", flags, tmp_path)
    data = np.random.default_rng(3).random((37, 4))
    case.arrays, case.integers = [data], [data.ctypes.data, len(data)]
    names = f64_fields(("re", 0), ("im", 8), ("scale_re", 16), ("scale_im", 24))
    case.structures = (Structure("s0", "q", data.ctypes.data, data.nbytes, (Dim(37, 32),), names),)
    verify(case, one(explore(case.structures), "aosoa", "complex", "pad"))


@pytest.mark.parametrize("kind", ["soa", "aosoa"])
@pytest.mark.parametrize("flags", FLAGS.values(), ids=FLAGS)
def test_a_mockup_of_chosen_elements(flags: tuple[str, ...], kind: str, tmp_path: Path) -> None:
    case = Case(PICKED, "relax", flags, tmp_path)
    random = np.random.default_rng(5)
    cells, picked = random.random((100, 4)), 2 * np.arange(50) + random.integers(0, 2, 50)
    used = np.zeros(100, np.bool_)
    used[picked] = True
    chosen = random.permutation(picked).astype(np.int32)
    case.arrays, case.integers = [cells, chosen], [cells.ctypes.data, chosen.ctypes.data, 50]
    names = f64_fields(("value", 0), ("rate", 8))
    case.structures = (Structure("s0", "cells", cells.ctypes.data, cells.nbytes, (Dim(100, 32),), names),)
    found = explore(case.structures, walks={"s0": Walk(0, True, 0.5, choose(used))})
    apart = tuple(c for c in found if c.relayouts[0].chosen is not None)
    verify(case, one(apart, kind, "split", "compact", *(["pad"] if kind == "aosoa" else [])))


@pytest.mark.parametrize("flags", FLAGS.values(), ids=FLAGS)
def test_a_mockup_in_blocks_of_an_outer_dimension(flags: tuple[str, ...], tmp_path: Path) -> None:
    width = 32
    text = " ".join(f"sum += m[i * n + j].a[{k}];" for k in range(width - 1))
    case = Case(COLUMNS % (width, text), "columns", flags, tmp_path)
    data = np.random.default_rng(4).random((8, 6, width))
    case.arrays, case.integers = [data], [data.ctypes.data, 8, 6]
    names = f64_fields(*((f"a{k}", 8 * k) for k in range(width - 1)))
    dims = (Dim(8, 6 * 8 * width), Dim(6, 8 * width))
    case.structures = (Structure("s0", "m", data.ctypes.data, data.nbytes, dims, names),)
    found = explore(case.structures, walks={"s0": Walk(0)}, budget=100)
    (blocks,) = [c for c in found if c.relayouts[0].fields[0].axes[0].part == "div"]
    verify(case, blocks)
