"""The trace of a team of threads as that of one: for all that asks which addresses an operand has, and not when."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import gcd

import numpy as np
from numpy.typing import NDArray

from layout_advise.layoutalgebra.sets.nests import AddressSet, FoldedStream, Stream
from layout_advise.layoutalgebra.sets.spans import addresses, spans
from layout_advise.tracer.trace.trace import Trace

MOST_BITS = 1 << 29
"""Places of a united set beyond which it is inexact (64 MB of bitmap, design, section 3)."""


def merged(trace: Trace) -> Trace:
    """As if the threads had run one after another: one reference for each operand of an instruction, with the streams of all
    threads in their order. It keeps ``threads``, but no order of execution. A trace without threads is returned as it is."""
    if not trace.threads:
        return trace
    first = trace.threads[0].number
    kept = [r for r in trace.references if r.thread == first]
    by_key: dict[tuple[int, int], list[Stream]] = {}
    for reference, stream in zip(trace.references, trace.streams, strict=True):
        if stream is not None:
            by_key.setdefault((reference.pc, reference.operand), []).append(stream)
    return replace(
        trace,
        references=tuple(replace(r, id=n, thread=0) for n, r in enumerate(kept)),
        streams=tuple(joined(by_key.get((r.pc, r.operand), [])) for r in kept),
        team_control=(),
    )


def joined(streams: Sequence[Stream]) -> Stream | None:
    """All accesses of several streams: one after another, or a set where one of them is a set (inexact where one of them is,
    or is too long to be expanded)."""
    if len(streams) < 2:
        return streams[0] if streams else None
    count = sum(stream.count for stream in streams)
    nests = [stream for stream in streams if isinstance(stream, FoldedStream)]
    if len(nests) == len(streams):
        return FoldedStream(tuple(node for stream in nests for node in stream.nodes), count)
    bounds = [span for stream in streams for span in spans(stream)]
    low, high = min(s.low for s in bounds), max(s.high for s in bounds)
    parts = [addresses(span) for span in bounds]
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return AddressSet(low, high, 1, count, None)
    every = np.unique(np.concatenate(known))
    return _set(every, count)


def _set(every: NDArray[np.int64], count: int) -> AddressSet:
    low, high = int(every[0]), int(every[-1])
    step = gcd(*np.diff(every).tolist()) if len(every) > 1 else 0
    places = (high - low) // step + 1 if step else 1
    if places > MOST_BITS:
        return AddressSet(low, high, step, count, None)
    bits = np.zeros(places, dtype=np.uint8)
    bits[(every - low) // max(step, 1)] = 1
    return AddressSet(low, high, step, count, np.packbits(bits, bitorder="little").tobytes())
