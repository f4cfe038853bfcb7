"""Outputs compared with those of ordinary runs."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from layout_advise.tracer.live.output import OutputComparison, compare_output


def test_words_that_differ_between_ordinary_runs_do_not_count() -> None:
    one, other = b"sum 12.5\ntook 0.31 s\n", b"sum 12.5\ntook 0.32 s\n"
    assert compare_output(one, other, b"sum 12.5\ntook 9 s\n") == OutputComparison(True, 1)
    assert compare_output(one, other, b"sum 12.6\ntook 0.31 s\n") == OutputComparison(False, 1)
    assert compare_output(one, other, b"sum 12.5\n") == OutputComparison(False, 1)
    assert compare_output(one, one, b"sum 12.5\ntook 0.32 s\n") == OutputComparison(False, 0)


def test_ordinary_runs_that_differ_in_more_than_words_compare_nothing() -> None:
    assert compare_output(b"a b c", b"a b", b"a b").own is None


@given(st.binary(max_size=40), st.binary(max_size=40))
def test_an_output_is_like_itself_and_unlike_another(one: bytes, other: bytes) -> None:
    assert compare_output(one, one, one) == OutputComparison(True, 0)
    assert compare_output(one, one, other).same == (one == other)
