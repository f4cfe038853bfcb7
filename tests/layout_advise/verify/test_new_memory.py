"""What was mapped after the program was parked, among very many mappings."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from layout_advise.tracer.process.stopped_program import Range
from layout_advise.verify.verify import without

LAST = 40


def ranges(edges: set[int]) -> list[Range]:
    """Ranges between each other pair of ascending edges; neighbours may meet."""
    known = sorted(edges)
    return [Range(low, high) for low, high in itertools.pairwise(known) if low % 3]


@given(st.sets(st.integers(0, LAST)), st.sets(st.integers(0, LAST)))
def test_it_is_what_only_the_later_map_has(later: set[int], earlier: set[int]) -> None:
    now, known = ranges(later), ranges(earlier)
    found = without(now, known)
    held = {at for r in now for at in range(r.start, r.end)} - {at for r in known for at in range(r.start, r.end)}
    assert {at for r in found for at in range(r.start, r.end)} == held
    assert sum(r.end - r.start for r in found) == len(held)


class Counted(int):
    """A number that counts how often numbers of its kind are compared."""

    comparisons = 0

    def __lt__(self, other: int) -> bool:
        Counted.comparisons += 1
        return int(self) < int(other)

    def __le__(self, other: int) -> bool:
        Counted.comparisons += 1
        return int(self) <= int(other)

    def __gt__(self, other: int) -> bool:
        Counted.comparisons += 1
        return int(self) > int(other)


def test_twenty_thousand_mappings_are_not_each_held_against_each() -> None:
    """A pairwise look took two minutes on a program with 40,000."""
    count = 20_000
    known = [Range(Counted(2 * k), Counted(2 * k + 1)) for k in range(count)]
    assert without([*known, Range(Counted(2 * count), Counted(2 * count + 5))], known) == (Range(2 * count, 2 * count + 5),)
    assert Counted.comparisons < 60 * count
