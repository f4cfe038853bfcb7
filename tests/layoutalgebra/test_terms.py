"""Terms, their laws and their text, on every offset of small layouts."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from layout_advise.errors import AlgebraError
from layout_advise.layoutalgebra.sets.index_set import index_set
from layout_advise.layoutalgebra.terms.simplify import simplify
from layout_advise.layoutalgebra.terms.term import A, S, Term, product, union
from layout_advise.layoutalgebra.terms.text import parse


def leaves(size: int) -> st.SearchStrategy[Term]:
    return st.sets(st.integers(0, size - 1), min_size=1).map(lambda chosen: S(chosen, size))


sizes = st.integers(1, 6)
any_leaf = sizes.flatmap(leaves)


@st.composite
def same_shape_sums(draw: st.DrawFn) -> Term:
    shape = draw(st.lists(st.integers(2, 4), min_size=1, max_size=3))
    rows = draw(st.integers(1, 4))
    return union(product(draw(leaves(n)) for n in shape) for _ in range(rows))


terms = (
    st.recursive(any_leaf, lambda inner: st.tuples(inner, inner).map(lambda p: p[0] @ p[1]), max_leaves=4)
    | same_shape_sums()
)


def values(term: Term) -> list[int]:
    return [term(x) for x in range(term.size)]


@given(terms)
def test_all_views_of_a_term_agree(term: Term) -> None:
    touched = [x for x in range(term.size) if term(x)]
    assert term.offsets() == touched
    assert term.count == len(touched)
    assert list(term.bitmap()) == values(term)


@given(any_leaf, any_leaf)
def test_product_is_its_definition(a: Term, b: Term) -> None:
    assert values(a @ b) == [a(x) * b(y) for x in range(a.size) for y in range(b.size)]


@given(any_leaf, any_leaf, any_leaf)
def test_product_is_associative_with_neutral_element(a: Term, b: Term, c: Term) -> None:
    assert (a @ b) @ c == a @ (b @ c)
    assert a @ A(1) == A(1) @ a == (a if a.size > 1 else A(1))


@given(sizes.flatmap(lambda n: st.tuples(leaves(n), leaves(n))), any_leaf)
def test_product_distributes_and_factors(pair: tuple[Term, Term], c: Term) -> None:
    a, b = pair
    assert values((a + b) @ c) == values(a @ c + b @ c)
    assert values(c @ (a + b)) == values(c @ a + c @ b)
    assert simplify(a @ c + b @ c) == simplify((a + b) @ c)
    assert values(a + b) == values(b + a)
    assert a + a == a


@given(terms)
def test_simplified_terms_are_equal_functions(term: Term) -> None:
    assert values(simplify(term)) == values(term)


@given(terms)
def test_text_round_trips(term: Term) -> None:
    assert parse(str(term)) == term
    assert parse(term.ascii()) == term
    assert eval(repr(term), {"parse": parse}) == term


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(1, 20), st.integers(1, 7)), min_size=1, max_size=5))
def test_index_sets_are_sets(parts: list[tuple[int, int, int]]) -> None:
    ranges = [range(a, a + n * s, s) for a, n, s in parts]
    truth = sorted(set().union(*ranges))
    found = index_set(ranges)
    assert list(found) == truth
    assert found.count == len(truth)
    assert found == index_set(truth)
    assert [found.nth(found.rank(x)) for x in truth] == truth
    assert all((x in found) == (x in truth) for x in range(200))


@given(*[st.lists(st.tuples(st.integers(0, 60), st.integers(1, 20), st.integers(1, 9)), min_size=1, max_size=3)] * 2)
def test_intersections_of_progressions(left: list[tuple[int, int, int]], right: list[tuple[int, int, int]]) -> None:
    a, b = (index_set(range(x, x + n * s, s) for x, n, s in parts) for parts in (left, right))
    truth = sorted(set(a) & set(b))
    common = a.intersection(b)
    assert (list(common) if common else []) == truth
    assert a.isdisjoint(b) == (not truth)


def test_huge_terms_cost_nothing() -> None:
    board = parse("(S_{0;2} ⊗ A_15625 ⊗ S_{0;2}) ⊕ (S_{1;2} ⊗ A_15625 ⊗ S_{1;2})") @ A(10**9)
    assert board.count == 31250 * 10**9
    assert A(10**9).count == 10**9
    assert S([range(0, 10**9, 2)], 10**9).ascii() == "S[0:1000000000:2;1000000000]"
    assert parse("S_{0:1000:2;1000}").count == 500
    for text in ("S_{0:1000:2;1000}", "S_{3:10:3;10}", "S_{0:6:2;9}", "S_{1:5;9}"):
        assert str(parse(text)) == text


def test_the_papers_example() -> None:
    even, odd = S([0], 2) @ A(256) @ S([0, 1], 4), S([1], 2) @ A(256) @ S([2, 3], 4)
    both = even + odd
    assert str(both) == "(S_{0;2} ⊗ A_256 ⊗ S_{0,1;4}) ⊕ (S_{1;2} ⊗ A_256 ⊗ S_{2,3;4})"
    assert both.count == 1024
    assert (A(2) @ even).latex() == r"A_{2} \otimes S_{\{0\};2} \otimes A_{256} \otimes S_{\{0,1\};4}"


@pytest.mark.parametrize(
    ("text", "column", "why"),
    [
        ("A_4 ⊗", 6, "expected A, S"),
        ("A_4 ⊗ B_3", 7, "expected A, S"),
        ("A_4 S_{0;2}", 5, "expected ⊗"),
        ("S_{0,1}", 7, "expected ';'"),
        ("S[0;4", 6, "expected ']'"),
        ("S_{5;4}", 1, "index 5 in a structure of 4"),
        ("A_0", 1, "size 0"),
        ("A_4 ⊕ A_5", 1, "different domains"),
        ("S_{3:3;4}", 4, "no index"),
        ("S_{0:4:0;4}", 4, "step of 0"),
        ("A_4 ? A_2", 5, "unexpected '?'"),
        ("", 1, "expected A, S"),
        ("A_9223372036854775808", 1, "2^63"),
        ("A_4294967296 ⊗ A_4294967296", 1, "2^63"),
        ("A_2 ⊗ A_1" + "0" * 5000, 9, "5001 digits"),
        ("(" * 300 + "A_2" + ")" * 300, 101, "100 parentheses"),
        ("A_-3", 3, "unexpected '-'"),
        ("A_٣", 3, "unexpected"),
        ("S_{;4}", 4, "expected a number"),
        ("S_{0:9223372036854775809;4}", 1, "2^63"),
    ],
)
def test_what_does_not_parse_says_where(text: str, column: int, why: str) -> None:
    with pytest.raises(AlgebraError) as caught:
        parse(text)
    assert f"line 1, column {column}" in str(caught.value)
    assert why in str(caught.value)
    assert caught.value.__notes__[0].endswith("\n" + " " * (column - 1) + "^")


def test_the_caret_stands_in_the_right_line() -> None:
    with pytest.raises(AlgebraError, match=r"line 2, column 12.*at the caret: S\[0,1;4\] \^\$") as caught:
        parse("A[2] *\n  S[0,1;4] $")
    assert caught.value.__notes__ == ["  S[0,1;4] $\n           ^"]


@pytest.mark.parametrize(
    ("build", "why"),
    [
        (lambda: A(0), "sizes start at 1"),
        (lambda: A(-3), "size -3: sizes start at 1"),
        (lambda: A(2.5), "2.5: it must be a whole number"),  # type: ignore[arg-type]
        (lambda: A("3"), "whole number"),  # type: ignore[arg-type]
        (lambda: A(2**63), "below 2\\^63"),
        (lambda: S([], 4), "empty index set"),
        (lambda: S([range(4, 4)], 4), "empty index set"),
        (lambda: S([0], 0), "size 0: sizes start at 1"),
        (lambda: S([0], -1), "sizes start at 1"),
        (lambda: S([-1], 4), "-1 is below 0"),
        (lambda: S([4], 4), "index 4 in a structure of 4"),
        (lambda: S([0.5], 4), "whole number"),  # type: ignore[list-item]
        (lambda: S([2**63], 2**62), "below 2\\^63"),
        (lambda: A(2**62) @ A(2), "is beyond 2\\^63"),
        (lambda: A(3) + A(4), "different domains"),
        (lambda: A(10**12).offsets(), "iterate over"),
        (lambda: A(10**12).bitmap(), "too large to write out"),
        (lambda: parse(None), "NoneType instead of text"),  # type: ignore[arg-type]
    ],
)
def test_bad_sizes_are_refused(build: Callable[[], object], why: str) -> None:
    with pytest.raises(AlgebraError, match=why):
        build()


def test_what_is_no_term_is_a_type_error() -> None:
    for wrong in (3, None, "A_3"):
        with pytest.raises(TypeError):
            A(3) @ wrong  # type: ignore[operator]
        with pytest.raises(TypeError):
            A(3) + wrong  # type: ignore[operator]


def test_numpy_integers_and_ranges_are_taken() -> None:
    assert S(np.array([0, 1]), np.int64(4)) == S([0, 1], 4)  # type: ignore[arg-type]
    assert S(range(0, 10**9, 2), 10**9) == S([range(0, 10**9, 2)], 10**9)
