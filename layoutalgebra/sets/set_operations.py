"""More operations on index sets, by arithmetic on their progressions wherever that is possible."""

from __future__ import annotations

from math import gcd

from layout_advise.errors import AlgebraError
from layout_advise.layoutalgebra.sets.index_set import ENUMERABLE, IndexSet, _meet, index_set

PIECES = 1 << 12
"""A result in more progressions than this is enumerated instead (and refused where it is too large for that)."""


def difference(one: IndexSet, other: IndexSet) -> IndexSet | None:
    """The elements of ``one`` that are not in ``other``; ``None`` where there are none.

    Raises :class:`AlgebraError` where progressions of millions of elements would have to be enumerated.
    """
    left = list(one.runs)
    for taken in other.runs:
        if len(left) > PIECES:
            return _enumerated(one, other)
        parts: list[range] = []
        for run in left:
            common = _meet(run, taken)
            if not common:
                parts.append(run)
            elif len(common) > 1 and common.step // run.step > PIECES:
                return _enumerated(one, other)
            else:
                parts.extend(_without(run, common))
        left = parts
    return index_set(left) if left else None


def _without(run: range, taken: range) -> list[range]:
    """``run`` without the progression ``taken`` that lies in it."""
    every = taken.step // run.step if len(taken) > 1 else 1
    begin, end = run.index(taken[0]), run.index(taken[-1]) + 1
    parts = [run[: max(0, begin - every + 1)], run[end + every - 1 :]]
    for shift in range(1, every):  # what lies between, with the few neighbours that continue it
        first = begin + shift - every
        parts.append(run[first if first >= 0 else begin + shift : end + every - 1 : every])
    return [part for part in parts if part]


def _enumerated(one: IndexSet, other: IndexSet) -> IndexSet | None:
    if one.count > ENUMERABLE:
        raise AlgebraError("index set too large", f"{one.count} elements would have to be listed", "use progressions")
    rest = [value for value in one if value not in other]
    return index_set(rest) if rest else None


def subset(one: IndexSet, other: IndexSet) -> bool:
    """True where every element of ``one`` is in ``other``."""
    if one.runs == other.runs:
        return True
    if len(other.runs) == 1 and other.runs[0].step == 1:
        return other.first <= one.first and one.last <= other.last
    if one.first < other.first or one.count > other.count:
        return False
    return all(_covered(run, other) for run in one.runs)


def _covered(run: range, by: IndexSet) -> bool:
    """True where every element of ``run`` is in one of the progressions of ``by``, which share none."""
    left = len(run)
    for other in by.runs:
        if other.start > run[-1]:
            break
        common = _meet(run, other)
        left -= len(common) if common is not None else 0
        if not left:
            return True
    return False


def quotients(indices: IndexSet, by: int) -> IndexSet:
    """``{i // by}``."""
    parts: list[int | range] = []
    for run in indices.runs:
        if run.step % by == 0:
            parts.append(range(run[0] // by, run[-1] // by + 1, run.step // by))
        elif run.step <= by:
            parts.append(range(run[0] // by, run[-1] // by + 1))
        else:
            parts.extend(i // by for i in _listed(run))
    return index_set(parts)


def remainders(indices: IndexSet, by: int) -> IndexSet:
    """``{i % by}``."""
    parts: list[int | range] = []
    for run in indices.runs:
        step = gcd(run.step, by)
        if len(run) >= by // step:  # a full turn: every value of one residue class by ``step``
            parts.append(range(run[0] % step, by, step))
        elif run[0] // by == run[-1] // by:
            parts.append(range(run[0] % by, run[-1] % by + 1, run.step))
        else:
            parts.extend({i % by for i in _listed(run)})
    return index_set(parts)


def nested(outer: IndexSet, size: int, inner: IndexSet) -> IndexSet:
    """``{i·size + j}`` for ``i`` of ``outer`` and ``j`` of ``inner``, every ``j`` below ``size``."""
    if inner.count == size:
        whole: list[int | range] = [range(run[0] * size, (run[-1] + 1) * size) for run in outer.runs if run.step == 1]
        if len(whole) == len(outer.runs):
            return index_set(whole)
    by_outer = len(outer.runs) * inner.count
    by_inner = outer.count * len(inner.runs)
    if min(by_outer, by_inner) > ENUMERABLE:
        raise AlgebraError("index set too large", f"it needs {min(by_outer, by_inner)} progressions")
    if by_outer <= by_inner:
        return index_set(range(r[0] * size + j, r[-1] * size + j + 1, r.step * size) for r in outer.runs for j in inner)
    return index_set(range(i * size + r[0], i * size + r[-1] + 1, r.step) for i in outer for r in inner.runs)


def progression(indices: IndexSet) -> range | None:
    """The set as one ascending progression, or ``None``."""
    if len(indices.runs) == 1:
        return indices.runs[0]
    if indices.count == 2:
        low, high = indices.first, indices.last
        return range(low, high + 1, high - low)
    return None


def _listed(run: range) -> range:
    if len(run) > ENUMERABLE:
        why = f"{len(run)} elements would have to be listed"
        raise AlgebraError("index set too large", why, "cut at a multiple of the step")
    return run
