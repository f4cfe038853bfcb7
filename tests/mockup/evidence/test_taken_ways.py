"""Ways that a further call took, of those on which mock-ups end."""

from __future__ import annotations

from layout_advise.mockup.evidence.kept_calls import taken_after_all
from layout_advise.mockup.ir.lifted import Lifted, WayEnd
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
