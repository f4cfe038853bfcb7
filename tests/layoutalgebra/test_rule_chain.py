"""What relayout.py and explore.py build directly comes out of the rules too: the same place for every accessed unit."""

import itertools
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from layout_advise.layoutalgebra import explore
from layout_advise.layoutalgebra.derive.structure import Candidate, Dim, Field, Relayout, Structure
from layout_advise.layoutalgebra.explore.explore import Walk
from layout_advise.layoutalgebra.explore.rule_chain import replay, term_of


def structure(counts: list[int], used: list[int], size: int, unit: int = 8, gap: int = 0) -> Structure:
    """Elements of ``size`` units; ``gap`` elements unused at the end of every row."""
    stride, dims = size * unit, list[Dim]()
    for k, count in reversed(list(enumerate(counts))):
        dims.insert(0, Dim(count, stride))
        stride *= count + (gap if k == len(counts) - 1 else 0)
    fields = tuple(Field(f"x{k}", k * unit, unit, None, 1 + k % 3, k % 2) for k in used)
    return Structure("s0", "t", 0, stride, tuple(dims), fields)


def check(layout: Relayout) -> int:
    """Every field of every element goes to the same place both ways; the number of units compared."""
    s, parts = layout.structure, replay(layout)
    assert parts is not None
    assert sorted(n for part in parts for n in part.fields) == list(range(len(s.fields)))
    tried = 0
    for part in parts:
        unit = part.unit_bytes
        begin = dict(
            zip(part.buffers, itertools.accumulate([0, *(layout.buffers[b].bytes for b in part.buffers)]), strict=False)
        )
        moved = set()
        for index in itertools.product(*(range(d.count) for d in s.dims)):
            for number in part.fields:
                old = sum(i * d.stride for i, d in zip(index, s.dims, strict=True)) + s.fields[number].offset
                new = part.rewrite.place(old // unit) * unit
                one = layout.fields[number]
                assert new == begin[one.buffer] + one.place(index), (layout.term, part.rewrite.map)
                moved.add(new // unit)
                tried += 1
        assert part.rewrite.new.offsets() == sorted(moved)
    return tried


def rules_of(layout: Relayout) -> set[str]:
    return {number for part in replay(layout) or () for number in part.rewrite.number.split(",") if number}


CASES = [
    structure([24], [0, 3, 4], 10),
    structure([6, 8], [0, 1, 2, 3], 4),
    structure([4, 3, 10], [1, 2, 5], 6),
    structure([3, 5], [0, 2], 3, gap=2),
    structure([17], [0, 1, 2, 3, 4], 5, unit=4),
]


@pytest.mark.parametrize("case", CASES, ids=lambda s: "x".join(str(d.count) for d in s.dims))
def test_every_candidate_is_its_rules(case: Structure) -> None:
    walks = {"s0": Walk(0, density=0.5)}
    found = [c for walk in ({}, walks) for c in explore([case], budget=100, walks=walk)]
    assert len(found) >= 6
    done = [c for c in found if replay(c.relayouts[0]) is not None]
    assert len(done) == len(found)
    for candidate in done:
        assert check(candidate.relayouts[0]) == case.count * len(case.fields)
        assert_derivation(candidate)


def assert_derivation(candidate: Candidate) -> None:
    """The rules named in the report are those that the replay used (9 is silent where it only parts buffers)."""
    used, named = rules_of(candidate.relayouts[0]), set(candidate.derivation)
    assert used <= named | {"7"}, (candidate, used)
    assert named - {"9", "4"} <= used | {"7", "8"}, (candidate, used)


@settings(max_examples=40)
@given(st.data())
def test_random_structures_too(data: st.DataObject) -> None:
    size = data.draw(st.integers(1, 7))
    used = sorted(data.draw(st.sets(st.integers(0, size - 1), min_size=1)))
    counts = data.draw(st.lists(st.integers(1, 9), min_size=1, max_size=3))
    s = structure(counts, used, size, unit=data.draw(st.sampled_from([4, 8])), gap=data.draw(st.integers(0, 2)))
    for candidate in explore([s], budget=100, lanes=(8, 16, 32), walks={"s0": Walk(0, density=0.5)}):
        if replay(candidate.relayouts[0]) is not None:
            check(candidate.relayouts[0])


def test_the_term_of_a_structure() -> None:
    assert str(term_of(CASES[0], 8)) == "A_24 ⊗ S_{0,3,4;10}"
    assert str(term_of(CASES[3], 8)) == "A_3 ⊗ S_{0:5;7} ⊗ S_{0,2;3}"
    assert term_of(CASES[0], 4).count == 2 * math.prod([24, 3])
