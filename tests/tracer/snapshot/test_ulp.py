"""The distance of floats in units of the last place, against Python's integers and against ``math.nextafter``."""

from __future__ import annotations

import math
import struct

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from layout_advise.tracer.snapshot.compare import _ulp

WORDS = st.lists(st.tuples(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1)), min_size=1, max_size=20)


def place(bits: int) -> int:
    """Where the float of these bits stands in the order of all floats; both zeros at 0."""
    return bits if bits < 2**63 else -(bits - 2**63)


@given(WORDS)
@example([(0, 1 << 63)])
@example([(2**63 - 1, 2**64 - 1)])
def test_distance_is_that_of_the_places_in_order(words: list[tuple[int, int]]) -> None:
    a, b = (np.array([pair[k] for pair in words], np.uint64).view(np.uint8) for k in (0, 1))
    offsets = np.flatnonzero(a != b)
    different = {int(k) // 8 for k in offsets}
    assert _ulp(a, b, offsets) == max(
        (abs(place(x) - place(y)) for k, (x, y) in enumerate(words) if k in different), default=0
    )


@given(st.floats(allow_nan=False, allow_infinity=False, max_value=1e300), st.integers(0, 40))
def test_so_many_floats_apart(value: float, steps: int) -> None:
    other = value
    for _ in range(steps):
        other = math.nextafter(other, math.inf)
    a, b = (np.frombuffer(struct.pack("<d", v), np.uint8) for v in (value, other))
    assert _ulp(a, b, np.flatnonzero(a != b)) == steps
