"""The memory distance of two fields: how many bytes a region accesses between one and the nearest access of the other.

Kofler, Cosenza, Fahringer: Automatic data layout optimizations for GPUs (Euro-Par 2015), the edges of the field graph. The
distance of two accesses is that of their places in the stream of all bytes accessed, from the first byte of one to the first
byte of the other. Loops are not gone through: what lies between two accesses of a field is the same from each iteration to
the next one, so that there are as few kinds of gaps as the nest has nodes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal

AccessKind = Literal["read", "written", "changed"]


@dataclass(frozen=True, slots=True)
class FieldAccess:
    """One access of ``bytes`` bytes to a field, by its name; ``None`` for memory that no distance is asked for. No distance
    hangs on its ``kind``, nor on the ``element`` of an array that the field is of."""

    field: str | None
    bytes: int
    kind: AccessKind = dataclasses.field(default="read", compare=False)
    element: str = dataclasses.field(default="", compare=False)

    @property
    def total(self) -> int:
        """Bytes accessed."""
        return self.bytes

    @property
    def fields(self) -> frozenset[str]:
        """The field accessed, if there is one."""
        return frozenset() if self.field is None else frozenset((self.field,))


@dataclass(frozen=True, slots=True)
class Repeat:
    """``times`` executions of ``body``, at least one."""

    times: int
    body: tuple[Step, ...]
    total: int = field(init=False)
    """Bytes accessed in all of them."""
    fields: frozenset[str] = field(init=False)
    """The fields accessed."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "total", self.times * sum(step.total for step in self.body))
        object.__setattr__(self, "fields", frozenset[str]().union(*(step.fields for step in self.body)))


Step = FieldAccess | Repeat


def memory_distances(steps: Sequence[Step]) -> dict[tuple[str, str], float]:
    """By pair of fields, in alphabetical order: the greatest number of bytes from any access of one of them to the nearest
    access of the other, before or after it. A field that is not accessed has no distance."""
    names = sorted(frozenset[str]().union(*(step.fields for step in steps)))
    toward = {name: _gaps(steps, name) for name in names}
    return {
        (a, b): max(_farthest(toward[b], a), _farthest(toward[a], b)) for k, a in enumerate(names) for b in names[k + 1 :]
    }


@dataclass(frozen=True, slots=True)
class _Stretch:
    """What is accessed from one access of a field (``after``: it is the first of ``steps``) until just before its next one
    (``before``); none on that side where the region begins or ends."""

    steps: tuple[Step, ...]
    after: bool
    before: bool


@dataclass(frozen=True, slots=True)
class _CutSteps:
    """Steps, cut where a field is accessed: what lies before the first access, between two, and from the last one on."""

    head: tuple[Step, ...]
    between: tuple[tuple[Step, ...], ...]
    tail: tuple[Step, ...]


def _gaps(steps: Sequence[Step], name: str) -> list[_Stretch]:
    cut = _cut(steps, name)
    assert cut is not None  # asked for fields that are accessed
    between = [_Stretch(gap, True, True) for gap in cut.between]
    return [_Stretch(cut.head, False, True), *between, _Stretch(cut.tail, True, False)]


def _cut(steps: Sequence[Step], name: str) -> _CutSteps | None:
    """The steps cut at the accesses of ``name``; ``None`` where there are none."""
    head: list[Step] = []
    between: dict[tuple[Step, ...], None] = {}
    tail: list[Step] | None = None
    for step in steps:
        if name not in step.fields:
            (head if tail is None else tail).append(step)
            continue
        one = _CutSteps((), (), (step,)) if isinstance(step, FieldAccess) else _repeated(step, name)
        if tail is None:
            head.extend(one.head)
        else:
            between[*tail, *one.head] = None
        between |= dict.fromkeys(one.between)
        tail = list(one.tail)
    return None if tail is None else _CutSteps(tuple(head), tuple(between), tuple(tail))


def _repeated(step: Repeat, name: str) -> _CutSteps:
    one = _cut(step.body, name)
    assert one is not None  # the field is in the body
    again = ((*one.tail, *one.head),) if step.times > 1 else ()
    return _CutSteps(one.head, (*one.between, *again), one.tail)


def _farthest(gaps: Sequence[_Stretch], name: str) -> float:
    """The distance of the access of ``name`` that is farthest from the field that the gaps lie between."""
    return max((_farthest_in(gap, name) for gap in gaps), default=0.0)


def _farthest_in(gap: _Stretch, name: str) -> float:
    size = sum(step.total for step in gap.steps)
    if not gap.after:
        first = _first_from(gap.steps, name, 0)
        return 0.0 if first is None else size - first
    if not gap.before:
        last = _last_until(gap.steps, name, size)
        return 0.0 if last is None else last
    near = (_last_until(gap.steps, name, size // 2), _first_from(gap.steps, name, size // 2))
    return max((min(place, size - place) for place in near if place is not None), default=0.0)


def _first_from(steps: Sequence[Step], name: str, least: int) -> int | None:
    """The first place, not before ``least``, at which ``name`` is accessed."""
    start = 0
    for step in steps:
        if name in step.fields and start + step.total > least:
            found = _first_in(step, name, least - start)
            if found is not None:
                return start + found
        start += step.total
    return None


def _first_in(step: Step, name: str, least: int) -> int | None:
    if isinstance(step, FieldAccess):
        return 0 if least <= 0 else None
    one = step.total // step.times
    turn = max(0, least) // one
    for number in range(turn, min(turn + 2, step.times)):
        found = _first_from(step.body, name, least - number * one)
        if found is not None:
            return number * one + found
    return None


def _last_until(steps: Sequence[Step], name: str, most: int) -> int | None:
    """The last place, not after ``most``, at which ``name`` is accessed."""
    starts = [0]
    for step in steps:
        starts.append(starts[-1] + step.total)
    for (start, _), step in reversed(list(zip(pairwise(starts), steps, strict=True))):
        if name in step.fields and start <= most:
            found = _last_in(step, name, most - start)
            if found is not None:
                return start + found
    return None


def _last_in(step: Step, name: str, most: int) -> int | None:
    if isinstance(step, FieldAccess):
        return 0 if most >= 0 else None
    one = step.total // step.times
    turn = min(most // one, step.times - 1)
    for number in range(turn, max(turn - 2, -1), -1):
        found = _last_until(step.body, name, most - number * one)
        if found is not None:
            return number * one + found
    return None
