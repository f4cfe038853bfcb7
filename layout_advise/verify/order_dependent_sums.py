"""Sums that several threads add to in any order: what rounding makes of them differs from run to run, of the original too.

gcc ends a reduction of floating-point numbers with a compare-and-swap that is tried until it succeeds, or with a critical
section; clang asks the runtime which of the two it is to be. Which thread comes first is open, and ``(a + b) + c`` need not
be ``a + (b + c)``. Only these numbers are compared up to rounding; all else that the region leaves must be the same bytes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from layout_advise.layoutalgebra.sets.nests import FoldedStream
from layout_advise.mockup.evidence.streams import expand_array
from layout_advise.mockup.ir.lifted import Atomic, Item, Let, Lifted, LiftedLoop, Operand, RuntimeCall, Store
from layout_advise.mockup.machine.openmp_runtime import is_dynamic
from layout_advise.tracer.process.stopped_program import Range
from layout_advise.tracer.trace.trace import Trace
from layout_advise.verify.policy import VERIFY

_ROUNDED = frozenset({"fadd", "fsub", "fmul", "fdiv", "fma"})
_OPEN = (
    *("GOMP_critical_start", "GOMP_critical_name_start", "GOMP_atomic_start"),
    *("__kmpc_critical", "__kmpc_critical_with_hint", "__kmpc_reduce", "__kmpc_reduce_nowait"),
)
_CLOSED = (
    *("GOMP_critical_end", "GOMP_critical_name_end", "GOMP_atomic_end"),
    *("__kmpc_end_critical", "__kmpc_end_reduce", "__kmpc_end_reduce_nowait"),
)
Read = Callable[[int, int], bytes]


@dataclass(frozen=True, slots=True)
class SharedSum:
    """A floating-point number at ``address``, of 4 or 8 bytes."""

    address: int
    bytes: int

    @property
    def range(self) -> Range:
        """The memory that it takes."""
        return Range(self.address, self.address + self.bytes)


def order_dependent(lifted: Lifted, trace: Trace) -> tuple[SharedSum, ...]:
    """The sums of the traced region, ``trace`` having the threads apart; none where they are too many."""
    keys = dict(_combined(lifted.body))
    found: set[SharedSum] = set()
    for reference, stream in zip(trace.references, trace.streams, strict=True):
        size = keys.get((reference.pc, reference.operand))
        if size is None or stream is None:
            continue
        if not isinstance(stream, FoldedStream):
            return ()
        found |= {SharedSum(int(address), size) for address in np.unique(expand_array(stream))}
    return tuple(sorted(found, key=lambda s: s.address)) if len(found) <= VERIFY.most_sums else ()


def farthest(sums: Sequence[SharedSum], one: Read, other: Read) -> int:
    """The greatest distance between the numbers as ``one`` and ``other`` read them, in units of the last place."""
    return max((_distance(one(s.address, s.bytes), other(s.address, s.bytes)) for s in sums), default=0)


def allowed(spread: int, lifted: Lifted, trace: Trace) -> int:
    """How far a mock-up's sums may be from the original's for rounding to explain it. ``spread`` is how far two runs of the
    original were apart. Each thread rounds once as it adds its part; where the runtime shares out the work anew, the parts
    themselves are other sums, whose errors add up like steps to random sides."""
    steps = math.isqrt(trace.accesses) if is_dynamic(lifted.body) else 0
    return max(VERIFY.sum_spread * spread, VERIFY.sum_ulp * len(trace.threads) + steps)


def _distance(one: bytes, other: bytes) -> int:
    return abs(_place(one) - _place(other))


def _place(data: bytes) -> int:
    """The position of a number in the order of all of its type; both zeros at 0."""
    bits, half = int.from_bytes(data, "little"), 1 << (8 * len(data) - 1)
    return bits if bits < half else half - bits


def _combined(body: Sequence[Item]) -> Iterator[tuple[tuple[int, int], int]]:
    """(pc, operand) and size of what writes a rounded number for which the threads take turns."""
    made: dict[Operand, Let] = {}
    locked = False
    for item in _in_order(body):
        if isinstance(item, Let):
            made[item.value] = item
        elif isinstance(item, RuntimeCall):
            locked = item.function in _OPEN or (locked and item.function not in _CLOSED)
        elif isinstance(item, Atomic | Store) and _rounded(_written(item, locked), made):
            yield (item.origin.pc, item.operand), int(item.ty[1:]) // 8


def _written(item: Atomic | Store, locked: bool) -> Operand | None:
    """The ranges that one thread at a time may write."""
    if isinstance(item, Atomic):
        return item.args[1] if item.operation == "cas" else None
    return item.stored if locked else None


def _in_order(body: Sequence[Item]) -> Iterator[Item]:
    for item in body:
        if isinstance(item, LiftedLoop):
            yield from _in_order(item.body)
        else:
            yield item


def _rounded(operand: Operand | None, made: dict[Operand, Let]) -> bool:
    """Tells whether a value is the result of floating-point arithmetic, perhaps as bits."""
    while operand is not None and (let := made.get(operand)) is not None:
        if let.name in _ROUNDED:
            return True
        if let.name != "bitcast":
            return False
        operand = let.args[0]
    return False
