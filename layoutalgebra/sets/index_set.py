"""Sets of offsets as unions of arithmetic progressions: a set of 1e9 numbers in a row costs as much as one number."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from heapq import merge
from operator import index

from layout_advise.errors import AlgebraError

LIMIT = 2**63
"""Sizes and offsets stay below this: they are byte addresses of a 64-bit program in the end."""

ENUMERABLE = 1 << 22
"""Sets up to this many elements may be enumerated to bring them into canonical form."""


@dataclass(frozen=True, slots=True)
class IndexSet:
    """A finite set of non-negative integers: pairwise disjoint progressions, ascending by first element.

    ``runs`` are canonical (equal sets have equal runs) as long as the set has at most :data:`ENUMERABLE` elements or is one
    progression. Made by :func:`index_set`.
    """

    runs: tuple[range, ...]

    @property
    def count(self) -> int:
        """Number of elements."""
        return sum(map(len, self.runs))

    @property
    def first(self) -> int:
        """The smallest element."""
        return self.runs[0][0]

    @property
    def last(self) -> int:
        """The greatest element."""
        return max(run[-1] for run in self.runs)

    def __contains__(self, value: int) -> bool:
        return any(value in run for run in self.runs)

    def __iter__(self) -> Iterator[int]:
        return iter(self.runs[0]) if len(self.runs) == 1 else merge(*self.runs)

    def rank(self, value: int) -> int:
        """How many elements are smaller than ``value``."""
        return sum(_below(run, value) for run in self.runs)

    def nth(self, number: int) -> int:
        """The element with exactly ``number`` smaller ones."""
        low, high = self.first, self.last
        while low < high:
            middle = (low + high) // 2
            if self.rank(middle + 1) > number:
                high = middle
            else:
                low = middle + 1
        return low

    def isdisjoint(self, other: IndexSet) -> bool:
        """True where no element is in both."""
        return all(not _meet(a, b) for a in self.runs for b in other.runs)

    def intersection(self, other: IndexSet) -> IndexSet | None:
        """The common elements, or ``None`` where there are none."""
        found = [m for a in self.runs for b in other.runs if (m := _meet(a, b))]
        return index_set(found) if found else None

    def union(self, other: IndexSet) -> IndexSet:
        """The elements of either."""
        return self if self.runs == other.runs else index_set((*self.runs, *other.runs))


def index_set(parts: Iterable[int | range]) -> IndexSet:
    """The union of numbers and ascending ranges, canonical.

    Raises :class:`AlgebraError` for an empty set, a negative element or one beyond 2**63, and where overlapping
    progressions of more than :data:`ENUMERABLE` elements would have to be enumerated.
    """
    runs = [p if isinstance(p, range) else _single(p) for p in parts]
    runs = [r if r.step > 0 else r[::-1] for r in runs if r]
    if not runs:
        raise AlgebraError("empty index set", "a layout accesses at least one offset", "leave out what is not accessed")
    if min(r[0] for r in runs) < 0:
        raise AlgebraError("negative index", f"{min(r[0] for r in runs)} is below 0", "offsets count from 0")
    if max(r[-1] for r in runs) >= LIMIT:
        raise AlgebraError("index too large", "offsets must stay below 2^63", "count in larger units")
    if len(runs) == 1 and (len(runs[0]) != 2):  # two numbers are no progression: one form for {a, b}
        return IndexSet((_tidy(runs[0]),))
    joined = _join_intervals(runs)
    if joined is not None:
        return IndexSet(joined)
    if sum(map(len, runs)) <= ENUMERABLE:
        return IndexSet(_greedy(sorted(set().union(*runs))))
    runs = sorted(set(runs), key=lambda r: (r[0], r.step))
    for place, run in enumerate(runs):
        if any(_meet(run, other) for other in runs[place + 1 :]):
            raise AlgebraError("index set too large", "overlapping progressions of many millions of offsets")
    return IndexSet(tuple(map(_tidy, runs)))


def whole_number(value: object, what: str) -> int:
    """``value`` as an ``int`` (NumPy's integers too). Raises :class:`AlgebraError` for anything that is no integer."""
    try:
        return index(value)  # type: ignore[arg-type]
    except TypeError:
        raise AlgebraError(f"{what} {value!r}", "it must be a whole number", "convert it with int()") from None


def _single(value: object) -> range:
    number = whole_number(value, "an index")
    return range(number, number + 1)


def _tidy(run: range) -> range:
    """The same elements with the exact stop and step 1 where it does not matter, so that equal sets compare equal."""
    return range(run[0], run[-1] + 1, run.step if len(run) > 1 else 1)


def _join_intervals(runs: list[range]) -> tuple[range, ...] | None:
    """The union of contiguous intervals of at least three elements each, else ``None``."""
    if any(r.step != 1 or len(r) < 3 for r in runs):
        return None
    joined: list[range] = []
    for run in sorted(runs, key=lambda r: r.start):
        if joined and run.start <= joined[-1].stop:
            joined[-1] = range(joined[-1].start, max(joined[-1].stop, run.stop))
        else:
            joined.append(run)
    return tuple(joined)


def _greedy(values: list[int]) -> tuple[range, ...]:
    """Longest runs of equal steps, intervals first; runs shorter than three stay single numbers.

    Intervals are cut out before anything else, so that the result depends on the set alone and agrees with
    :func:`_join_intervals`.
    """
    found: list[range] = []
    rest: list[int] = []
    start = 0
    for end in range(1, len(values) + 1):
        if end == len(values) or values[end] != values[end - 1] + 1:
            if end - start >= 3:
                found.append(range(values[start], values[end - 1] + 1))
            else:
                rest.extend(values[start:end])
            start = end
    place = 0
    while place < len(rest):
        end = place + 1
        while end + 1 < len(rest) and rest[end + 1] - rest[end] == rest[place + 1] - rest[place]:
            end += 1
        if end - place >= 2:
            found.append(_tidy(range(rest[place], rest[end] + 1, rest[place + 1] - rest[place])))
            place = end + 1
        else:
            found.append(range(rest[place], rest[place] + 1))
            place += 1
    return tuple(sorted(found, key=lambda r: r.start))


def _below(run: range, value: int) -> int:
    """Number of elements of an ascending ``run`` below ``value``."""
    return bisect_right(run, value - 1)


def _meet(a: range, b: range) -> range | None:
    """The common elements of two ascending progressions: again a progression (Chinese remainder), or ``None``."""
    if a[-1] < b.start or b[-1] < a.start:
        return None
    if len(a) == 1 or len(b) == 1:
        one, other = (a, b) if len(a) == 1 else (b, a)
        return range(one.start, one.start + 1) if one.start in other else None
    if a.step == b.step == 1:
        return range(max(a.start, b.start), min(a.stop, b.stop))
    gcd, x, _ = _extended(a.step, b.step)
    if (b.start - a.start) % gcd:
        return None
    step = a.step // gcd * b.step
    first = a.start + (b.start - a.start) // gcd * x % (b.step // gcd) * a.step
    low = max(a.start, b.start)
    first += -((first - low) // step) * step if first < low else 0
    first -= (first - low) // step * step
    found = range(first, min(a[-1], b[-1]) + 1, step)
    return found if len(found) else None


def _extended(a: int, b: int) -> tuple[int, int, int]:
    """``(g, x, y)`` with ``a * x + b * y == g == gcd(a, b)``."""
    x, next_x, y, next_y = 1, 0, 0, 1
    while b:
        q = a // b
        a, b = b, a % b
        x, next_x = next_x, x - q * next_x
        y, next_y = next_y, y - q * next_y
    return a, x, y
