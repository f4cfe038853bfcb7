"""Memory that a call writes and never reads: with other bytes in it before the call, it can be seen to be written.

A filter that is called again on the same image writes what is there already. Then every mock-up, also one that does nothing,
leaves what the original leaves. What a call never reads it computes nothing from: other bytes there change nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from layout_advise.layoutalgebra.sets.nests import AddressSet, Stream
from layout_advise.layoutalgebra.sets.spans import AddressSpan, addresses
from layout_advise.mockup.evidence.streams import expand_array, hull
from layout_advise.tracer.process.procfs import write_memory
from layout_advise.tracer.process.stopped_program import StoppedProgram
from layout_advise.tracer.trace.trace import Trace
from layout_advise.verify.policy import VERIFY

OTHER = 0xA5


@dataclass(frozen=True, slots=True)
class Overwritten:
    """Bytes from ``start`` on; ``only_written`` tells which of them the call writes and does not read."""

    start: int
    only_written: NDArray[np.bool_]


def overwritten(trace: Trace) -> tuple[Overwritten, ...]:
    """The ranges that the traced call writes and nowhere reads, but for its stack; nothing where the trace is not whole."""
    if trace.truncated:
        return ()
    used = [(r, s) for r, s in zip(trace.references, trace.streams, strict=True) if s is not None and s.count]
    stack = next((m for m in trace.mappings if m.start <= trace.registers.gpr[4] < m.end), None)
    hulls = [_hull(s, r.bytes) for r, s in used if r.kind != "read"]
    places = [h for h in hulls if stack is None or h[1] <= stack.start or stack.end <= h[0]]
    found = []
    for start, end in _joined(places):
        if end - start > VERIFY.most_overwritten:
            continue
        mask = np.zeros(end - start, np.bool_)
        for mark, kinds in ((True, ("write",)), (False, ("read", "both"))):
            for reference, stream in used:
                if reference.kind in kinds:
                    _mark(mask, start, stream, reference.bytes, mark)
        if mask.any():
            found.append(Overwritten(start, mask))
    return tuple(found)


def spoil(program: StoppedProgram, places: Sequence[Overwritten]) -> None:
    """Put other bytes there; done twice, it puts the old ones back."""
    for place in places:
        held = np.frombuffer(program.read(place.start, len(place.only_written)), np.uint8)
        changed = np.where(place.only_written, held ^ OTHER, held).astype(np.uint8)
        write_memory(program.pid, place.start, changed.tobytes())


def _hull(stream: Stream, size: int) -> tuple[int, int]:
    low, high = hull(stream)
    return low, high + size


def _joined(places: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    joined: list[tuple[int, int]] = []
    for start, end in sorted(places):
        if joined and start <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(joined[-1][1], end)
        else:
            joined.append((start, end))
    return joined


def _mark(mask: NDArray[np.bool_], start: int, stream: Stream, size: int, value: bool) -> None:
    low, high = _hull(stream, size)
    if high <= start or start + len(mask) <= low:
        return
    each = _addresses(stream)
    if each is None:
        if not value:
            mask[max(0, low - start) : high - start] = False
        return
    for byte in range(size):
        at = each + byte - start
        mask[at[(at >= 0) & (at < len(mask))]] = value


def _addresses(stream: Stream) -> NDArray[np.int64] | None:
    """Every address, or None where there are too many or they are not known exactly."""
    if isinstance(stream, AddressSet):
        return addresses(AddressSpan(stream.minimum, stream.maximum, stream.count, stream))
    return expand_array(stream).astype(np.int64) if stream.count <= VERIFY.most_expanded else None
