"""Ways that a further call took, of those on which mock-ups end."""

from __future__ import annotations

from dataclasses import replace

from layout_advise.mockup.evidence.kept_calls import taken_after_all, what_is_called
from layout_advise.mockup.ir.lifted import ANOTHER_CALLEE, Lifted, WayEnd
from layout_advise.tracer.trace.trace import Registers, Trace


def a_trace(*untaken: int) -> Trace:
    return Trace("f", 1, "clone", (), (), 0, False, Registers((0,) * 16, 0, 0, 0, 0), (), (), untaken=untaken)


def test_all_that_a_call_ran_is_known_at_once() -> None:
    """Behind the end of a way are others, at which mock-ups would end next."""
    lifted = Lifted("f", 1, (), (), (WayEnd(10, "not taken"), WayEnd(20, "not taken")))
    first = a_trace(10, 11, 12, 20, 30)
    assert taken_after_all(lifted, first, a_trace(12, 20, 30)) == {10, 11}
    assert taken_after_all(lifted, first, a_trace(10, 11, 20)) == frozenset()  # what it ran is lifted
    assert taken_after_all(lifted, first, first) == frozenset()


def calling(*called: tuple[int, tuple[int, ...]]) -> Trace:
    return replace(a_trace(), called=called)


def test_what_a_call_through_a_pointer_comes_to_is_united_over_the_traced_calls() -> None:
    first, other = calling((10, (1, 2)), (20, (3,)), (30, ())), calling((10, (2, 4)), (20, ()), (40, (5,)))
    assert what_is_called(first, (), frozenset()) == {10: (1, 2), 20: (3,)}
    assert what_is_called(first, (other,), frozenset((40,))) == {10: (1, 2, 4)}


def test_a_call_that_comes_to_another_function_is_none_of_those_that_are_known() -> None:
    lifted = Lifted("f", 1, (), (), (WayEnd(10, ANOTHER_CALLEE), WayEnd(20, ANOTHER_CALLEE)))
    first = calling((10, (1, 2)))
    assert taken_after_all(lifted, first, calling((10, (2,)))) == frozenset()
    assert taken_after_all(lifted, first, calling((10, (2, 3)))) == {10}
    assert taken_after_all(lifted, first, calling((10, ()))) == {10}
    assert taken_after_all(lifted, first, calling((20, (7,)), (30, (8,)))) == frozenset()  # known of another kind of calls
