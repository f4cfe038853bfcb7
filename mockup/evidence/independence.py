"""Dependence test: can two accesses of a loop touch the same bytes? From their addresses alone, else from the traced ones.

What the trace shows holds for the traced call. A mock-up is only ever run on calls whose own trace it was made from.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from layout_advise.layoutalgebra.derive.structure import Structure
from layout_advise.layoutalgebra.sets.nests import FoldedStream, Loop, Node, Point
from layout_advise.mockup.evidence.binding import Access, Binding, Key, access_bytes, executed, key_of
from layout_advise.mockup.evidence.streams import expand_array, hull, residue
from layout_advise.mockup.ir.linear_forms import Form, signed

LONGEST = 8_000_000
"""Traced addresses beyond which streams are not compared one by one."""


@dataclass(frozen=True, slots=True)
class LoopAccess:
    """An access in a loop: its address as a form; ``fixed`` tells that no atom of it changes within the loop."""

    access: Access
    form: Form
    fixed: bool


class Independence:
    """Decides for the accesses of one hotspot. ``alone`` are the references that one access each is all there is of."""

    def __init__(self, binding: Binding, structures: Sequence[Structure], alone: frozenset[Key]) -> None:
        self.binding = binding
        self.elements = {s.id: s for s in structures}
        self.alone = alone

    def apart(self, first: LoopAccess, second: LoopAccess) -> bool:
        """Returns whether the two never overlap within one iteration of a straight loop body."""
        a, b = first.access, second.access
        if first.form.parallel(second.form):
            return _disjoint(signed(second.form.const - first.form.const), access_bytes(a), access_bytes(b))
        return self.hulls_apart(a, b) or self.fields_apart(a, b) or self._executions_apart(a, b)

    def iterations_apart(self, first: LoopAccess, second: LoopAccess) -> bool:
        """Returns whether no iteration's ``first`` overlaps another iteration's ``second``."""
        a, b = first.access, second.access
        if first.fixed and second.fixed and first.form.parallel(second.form):
            distance = signed(second.form.const - first.form.const)
            if _steps_apart(distance, first.form.step, access_bytes(a), access_bytes(b)):
                return True
        return self.hulls_apart(a, b) or self.fields_apart(a, b)

    def hulls_apart(self, first: Access, second: Access) -> bool:
        """Returns whether all traced addresses of one lie below or above all of the other."""
        spans = [self._span(x) for x in (first, second)]
        if spans[0] is None or spans[1] is None or not self._comparable(first, second):
            return False
        return spans[0][1] <= spans[1][0] or spans[1][1] <= spans[0][0]

    def _comparable(self, first: Access, second: Access) -> bool:
        """Returns whether the addresses of both are places in memory, or both are only thought ones."""
        return len({self.binding.pooled((pc, op)) for x in (first, second) for pc, op, _ in executed(x)}) == 1

    def ran(self, access: Access) -> bool:
        """Returns whether the traced call executed it."""
        return any((pc, operand) in self.binding.streams for pc, operand, _ in executed(access))

    def _span(self, access: Access) -> tuple[int, int] | None:
        lows, highs = [], []
        for pc, operand, part in executed(access):
            stream = self.binding.streams.get((pc, operand))
            if stream is None:
                return None
            low, high = hull(stream)
            lows.append(low + part)
            highs.append(high + part + access_bytes(access))
        return min(lows), max(highs)

    def fields_apart(self, first: Access, second: Access) -> bool:
        """Returns whether the two touch other bytes of the elements of one structure."""
        names = {self.binding.structure_of.get((pc, op)) for x in (first, second) for pc, op, _ in executed(x)}
        structure = self.elements.get(names.pop() or "") if len(names) == 1 else None
        if structure is None:
            return False
        size = structure.element_bytes
        touched = [self._offset(x, structure) for x in (first, second)]
        if touched[0] is None or touched[1] is None or first is second:
            return False
        low, high = sorted(zip((touched[0], touched[1]), (access_bytes(first), access_bytes(second)), strict=True))
        return low[0] + low[1] <= high[0] and high[0] + high[1] <= low[0] + size

    def _offset(self, access: Access, structure: Structure) -> int | None:
        """The access's place in the element, where it is the same each time."""
        found: set[int | None] = set()
        for pc, operand, part in executed(access):
            at = residue(self.binding.streams[pc, operand], structure.base, structure.element_bytes)
            found.add(None if at is None else (at + part) % structure.element_bytes)
        return found.pop() if len(found) == 1 else None

    def _executions_apart(self, first: Access, second: Access) -> bool:
        """Returns whether the n-th traced address of one never overlaps the n-th of the other."""
        keys = [key_of(x) for x in (first, second)]
        streams = [self.binding.streams.get(key) for key in keys]
        a, b = streams
        if not isinstance(a, FoldedStream) or not isinstance(b, FoldedStream) or a.count != b.count:
            return False
        if not self.alone.issuperset(keys) or not self._comparable(first, second):
            return False
        distances = _distances(a.nodes, b.nodes)
        if distances is None:
            if a.count > LONGEST:
                return False
            differences = expand_array(b).astype(np.int64) - expand_array(a).astype(np.int64)
            distances = iter(int(d) for d in np.unique(differences))
        shift, sizes = second.part - first.part, (access_bytes(first), access_bytes(second))
        return all(_disjoint(d + shift, *sizes) for d in distances)


def _distances(first: Sequence[Node], second: Sequence[Node]) -> Iterator[int] | None:
    """By how much the second stream's addresses differ from the first's, where both run through the same nest."""
    found: list[int] = []

    def same(one: Sequence[Node], other: Sequence[Node]) -> bool:
        if len(one) != len(other):
            return False
        for a, b in zip(one, other, strict=True):
            if isinstance(a, Point) and isinstance(b, Point):
                if a.address.coefs != b.address.coefs:
                    return False
                found.append(b.address.const - a.address.const)
            elif not (isinstance(a, Loop) and isinstance(b, Loop) and a.trip == b.trip and same(a.body, b.body)):
                return False
        return True

    return iter(found) if same(first, second) else None


def _disjoint(distance: int, size: int, other: int) -> bool:
    """Returns whether ``size`` bytes at 0 and ``other`` bytes at ``distance`` have none in common."""
    return distance >= size or distance + other <= 0


def _steps_apart(distance: int, step: int, size: int, other: int) -> bool:
    """Returns whether ``size`` bytes at 0 miss ``other`` bytes at ``distance + n * step`` for every n but 0."""
    if step == 0:
        return _disjoint(distance, size, other)
    low, high = -other - distance, size - distance  # overlap: low < n * step < high
    magnitude = abs(step)
    first = low // magnitude + 1  # the smallest n * |step| above low
    overlapping = range(first, -(-high // magnitude))
    return all(n == 0 for n in overlapping)
