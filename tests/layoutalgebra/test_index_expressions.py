"""Address expressions: what the constructors simplify has the same values, for all values of the indices."""

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from layout_advise.layoutalgebra.sets.index_expressions import (
    Expr,
    Index,
    bounds,
    digit,
    evaluate,
    linear,
    nth,
    rank,
    show,
    spelled_out,
    substitute,
)
from layout_advise.layoutalgebra.sets.index_set import index_set

OUTER, INNER = Index("i", 6), Index("j", 5)
VALUES = [{"i": i, "j": j} for i, j in itertools.product(range(6), range(5))]
small = st.integers(1, 12)


def of(expr: Expr) -> list[int]:
    return [evaluate(expr, values) for values in VALUES]


@settings(max_examples=400)
@given(small, small, st.integers(0, 9), small, st.integers(0, 12), small, st.integers(0, 12))
def test_digits_of_sums(a: int, b: int, const: int, div: int, mod: int, second: int, last: int) -> None:
    total = linear([(a, OUTER), (b, INNER)], const)
    truth = [a * v["i"] + b * v["j"] + const for v in VALUES]
    assert of(total) == truth
    one = digit(total, div, mod)
    truth = [x // div % mod if mod else x // div for x in truth]
    assert of(one) == truth
    two = digit(linear([(3, one), (1, digit(INNER, 1, 2))]), second, last)
    truth = [(3 * x + v["j"] % 2) // second for x, v in zip(truth, VALUES, strict=True)]
    assert of(two) == [x % last if last else x for x in truth]
    low, high = bounds(two)
    assert low <= min(of(two))
    assert max(of(two)) <= high
    assert eval_shown(two) == of(two)


def eval_shown(expr: Expr) -> list[int]:
    """The printed form, as Python reads it."""
    return [eval(show(expr), {}, dict(values)) for values in VALUES]


@given(small, small, st.integers(1, 8))
def test_digits_put_together_again(size: int, coef: int, rest: int) -> None:
    """A quotient and a remainder by one number are the number."""
    whole = linear([(size, OUTER), (rest, INNER)])
    parts = linear([(coef * 7, digit(whole, 7)), (coef, digit(whole, 1, 7))])
    assert of(parts) == [coef * x for x in of(whole)]
    assert parts == linear([(coef, whole)])


@given(st.sets(st.integers(0, 29), min_size=1), st.integers(1, 4))
def test_ranks_and_their_inverse(chosen: set[int], div: int) -> None:
    indices, x = index_set(chosen), Index("x", 30)
    numbers = sorted(chosen)
    there, back = rank(x, indices), nth(Index("x", len(numbers)), indices)
    for expr in (there, spelled_out(there)):
        assert [evaluate(expr, {"x": value}) for value in numbers] == list(range(len(numbers)))
    for expr in (back, spelled_out(back)):
        assert [evaluate(expr, {"x": k}) for k in range(len(numbers))] == numbers
    both = substitute(digit(back, div), {"x": there})
    assert [evaluate(both, {"x": value}) for value in numbers] == [value // div for value in numbers]
