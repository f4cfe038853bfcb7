"""Every rule's index map is a bijection on the accessed offsets."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layout_advise.errors import AlgebraError
from layout_advise.layoutalgebra.indexset import index_set
from layout_advise.layoutalgebra.rules import (
    Compact,
    CutBlocks,
    CutPeriods,
    CutStride,
    Fuse,
    Pad,
    Permute,
    Rule,
    SplitArray,
    divide,
)
from layout_advise.layoutalgebra.terms import A, S, Term, product, union
from layout_advise.layoutalgebra.text import parse


@st.composite
def sums(draw: st.DrawFn) -> Term:
    shape = draw(st.lists(st.sampled_from([2, 3, 4, 6]), min_size=2, max_size=3))
    rows = [
        product(S(draw(st.sets(st.integers(0, n - 1), min_size=1)), n) for n in shape)
        for _ in range(draw(st.integers(1, 3)))
    ]
    return union(rows)


rules = st.one_of(
    st.builds(CutBlocks, st.integers(0, 2), st.integers(2, 3)),
    st.builds(CutPeriods, st.integers(0, 2), st.integers(2, 3)),
    st.builds(CutStride, st.integers(0, 2), st.integers(2, 3)),
    st.builds(Permute, st.integers(0, 1)),
    st.builds(SplitArray, st.integers(0, 2), st.integers(2, 3)),
    st.builds(Fuse, st.integers(0, 1)),
    st.builds(Compact, st.integers(0, 2)),
    st.builds(Pad, st.integers(0, 2), st.integers(2, 8)),
)


@given(sums(), rules)
def test_a_rewriting_is_a_bijection_on_what_is_accessed(term: Term, rule: Rule) -> None:
    try:
        rewrite = rule.apply(term)
    except AlgebraError:
        with pytest.raises(AlgebraError, match=f"rule {rule.number} does not apply"):
            rule.apply(term)
        return
    old = term.offsets()
    assert sorted(map(rewrite.place, old)) == rewrite.new.offsets()
    if rule.number in ("1", "2", "3", "5", "6"):
        assert [rewrite.place(x) for x in old] == old


EXAMPLE = parse("(S_{0;2} ⊗ A_256 ⊗ S_{0,1;4}) ⊕ (S_{1;2} ⊗ A_256 ⊗ S_{2,3;4})")


def test_compaction_of_the_papers_example_once_but_not_twice() -> None:
    once = Compact(2).apply(EXAMPLE)
    assert str(once.new) == "(S_{0;2} ⊗ A_256 ⊗ A_2) ⊕ (S_{1;2} ⊗ A_256 ⊗ A_2)"
    assert sorted(map(once.place, EXAMPLE.offsets())) == list(range(1024))
    with pytest.raises(AlgebraError, match="1024 accessed offsets would share 512 places"):
        Compact(0).apply(once.new)


def test_structure_of_arrays_by_rules() -> None:
    term = A(100) @ S([5], 8)
    soa = Permute(0).apply(term)
    done = Compact(0).apply(soa.new)
    assert done.new == A(100)
    assert [done.place(soa.place(8 * k + 5)) for k in range(100)] == list(range(100))


def test_refusals_say_which_condition_failed() -> None:
    for rule, term, why in (
        (Compact(0), A(4), "is an array"),
        (Fuse(0), A(4) @ S([0], 2), "is an array"),
        (SplitArray(0, 4), A(10), "pad to 12 first"),
        (SplitArray(0, 2), S([0], 4), "not an array"),
        (CutBlocks(0, 2), S([0, 3], 4), "whole blocks of 2"),
        (CutPeriods(0, 2), S([0, 3], 4), "repeat every 2"),
        (CutStride(0, 2), S([0, 3], 4), "2 remainders"),
        (Pad(0, 3), A(4), "smaller than 4"),
        (Permute(3), A(4) @ A(2), "there are 2 factors"),
    ):
        with pytest.raises(AlgebraError, match=why):
            rule.apply(term)


@given(sums(), st.integers(0, 1), st.sets(st.integers(0, 5), min_size=1))
def test_dividing_keeps_every_offset_once(term: Term, position: int, chosen: set[int]) -> None:
    try:
        left, right = divide(term, position, index_set(chosen))
    except AlgebraError:
        return
    assert sorted(left.offsets() + right.offsets()) == term.offsets()
