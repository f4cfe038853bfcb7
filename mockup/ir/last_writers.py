"""The place of the frame that wrote last what a load reads, of places that share bytes.

Compilers give the bytes of a frame to several variables, one after the other: a double in one part of a function, a float in
another. Where each load reads what its own place wrote last, on every way, the places are variables of their own (the live
ranges of a register allocator, with a place and its size for a name).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from layout_advise.mockup.ir.lifted import Goto, Item, Label, LiftedLoop, Store, WayEnd

Place = tuple[int, int]
"""Bytes from the stack pointer at the entry, and how many are loaded and stored there."""
Writers = Mapping[int, Place | None]
"""By byte the place that wrote it last, None: different ones by the way that was taken. Bytes that nothing wrote are absent:
they are as at the entry, for every place that is loaded then."""


@dataclass(frozen=True, slots=True)
class LastWriters:
    """``mixed`` are places of which some load may read bytes that another one wrote; ``at_end`` who wrote last there."""

    mixed: frozenset[Place]
    at_end: Writers


def bytes_of(place: Place) -> range:
    """The bytes of a place, counted from the stack pointer."""
    return range(place[0], sum(place))


def last_writers(body: Sequence[Item], place_of: Mapping[int, Place]) -> LastWriters:
    """Follows all ways through ``body``, in which ``place_of`` tells the places of loads and stores by their ``uid``."""
    flow = _AlongWays(place_of)
    at_end = flow.through(body, {})
    return LastWriters(frozenset(flow.mixed), at_end if at_end is not None else {})


class _AlongWays:
    """The writers along all ways; a state of None is that of a point that no way comes to."""

    def __init__(self, place_of: Mapping[int, Place]) -> None:
        self.place_of = place_of
        self.waiting: dict[int, Writers] = {}
        """By label the writers at the jumps to it."""
        self.mixed: set[Place] = set()

    def through(self, items: Sequence[Item], state: Writers | None) -> Writers | None:
        """The writers behind ``items``, which are come to with ``state``."""
        for item in items:
            if isinstance(item, Label):
                state = _merged(state, self.waiting.get(item.number))
            if state is None:
                continue
            if isinstance(item, Goto):
                self.waiting[item.label] = _merged(state, self.waiting.get(item.label)) or {}
                state = state if item.condition is not None else None
            elif isinstance(item, WayEnd):
                state = None
            elif isinstance(item, LiftedLoop):
                state = self._around(item, state)
            elif (place := self.place_of.get(item.uid)) is not None:
                state = self._access(place, state, writes=isinstance(item, Store))
        return state

    def _around(self, loop: LiftedLoop, state: Writers) -> Writers | None:
        """The writers behind a loop: until another iteration changes nothing at its head any more."""
        while (again := _merged(state, self.through(loop.body, state)) or {}) != state:
            state = again
        return state if loop.trip is not None else None

    def _access(self, place: Place, state: Writers, *, writes: bool) -> Writers:
        if writes:
            return {**state, **dict.fromkeys(bytes_of(place), place)}
        if any(byte in state and state[byte] != place for byte in bytes_of(place)):
            self.mixed.add(place)
        return state


def _merged(one: Writers | None, other: Writers | None) -> Writers | None:
    """The writers where two ways meet."""
    if one is None or other is None or one is other:
        return other if one is None else one
    return {byte: _either(byte, one, other) for byte in {**one, **other}}


def _either(byte: int, one: Writers, other: Writers) -> Place | None:
    if byte not in one or byte not in other:
        return other[byte] if byte not in one else one[byte]
    return one[byte] if one[byte] == other[byte] else None
