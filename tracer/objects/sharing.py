"""Cache lines that several threads of a region use and at least one of them writes, from the folded trace.

Where some byte is written by one thread and used by another, the sharing is *true*: the threads exchange data, or race for
it. Where all of them keep to bytes of their own, it is *false*: the line travels between the cores for nothing, and data
laid out apart would stop that. (The distinction is that of J. Torrellas, M. Lam, J. Hennessy, "False Sharing and Spatial
Locality in Multiprocessor Caches", IEEE Transactions on Computers 43(6), 1994, with one line's whole use in the region for
its lifetime.)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from layout_advise.layoutalgebra.sets.nests import AddressSet, Affine
from layout_advise.layoutalgebra.sets.spans import AddressSpan, addresses, hull, spans
from layout_advise.tracer.trace.trace import Trace

LINE = 64
LIMIT = 1 << 22
"""Accesses of one reference, between the bounds of what other threads use, above which it is not looked at."""

Interval = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Sharing:
    """``false`` and ``true`` are the addresses of the shared lines, ascending. ``users`` has, for each reference (by its id)
    that writes falsely shared lines or reads such that another thread writes, how many of these.
    ``skipped`` are the references that were too many accesses to look at: lines that only they share are missing."""

    false: tuple[int, ...] = ()
    true: tuple[int, ...] = ()
    users: dict[int, int] = field(default_factory=dict)
    skipped: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class _ThreadUse:
    """The lines that one reference uses, each once, with a mask of their bytes."""

    reference: int
    thread: int
    writes: bool
    lines: NDArray[np.uint64]
    masks: NDArray[np.uint64]


def find_sharing(trace: Trace) -> Sharing:
    """The lines that threads of the traced region share and write. Accesses to their own stacks count like all others."""
    if len(trace.threads) < 2:
        return Sharing()
    hulls = _hulls(trace)
    uses: list[_ThreadUse] = []
    skipped: list[int] = []
    for reference, stream in zip(trace.references, trace.streams, strict=True):
        windows = _windows(reference.thread, hulls[reference.id], reference.kind != "read", trace, hulls)
        if stream is None or not windows:
            continue
        parts = [clipped(span, low - reference.bytes, high) for span in spans(stream) for low, high in windows]
        known = [part for part in parts if part is not None]
        if len(known) < len(parts):
            skipped.append(reference.id)
            continue
        lines, masks = line_masks(np.unique(np.concatenate(known)), reference.bytes)
        uses.append(_ThreadUse(reference.id, reference.thread, reference.kind != "read", lines, masks))
    return _judge(uses, tuple(skipped))


def _hulls(trace: Trace) -> list[tuple[Interval, ...]]:
    """By reference: the bounds of its points in whole lines."""
    return [
        tuple((s.low // LINE * LINE, (s.high + r.bytes - 1) // LINE * LINE + LINE) for s in spans(stream)) if stream else ()
        for r, stream in zip(trace.references, trace.streams, strict=True)
    ]


def _windows(
    thread: int, own: Iterable[Interval], writes: bool, trace: Trace, hulls: Sequence[tuple[Interval, ...]]
) -> list[Interval]:
    """The addresses of a reference at which it can meet another thread, one of both writing."""
    others = [
        interval
        for reference in trace.references
        if reference.thread != thread and (writes or reference.kind != "read")
        for interval in hulls[reference.id]
    ]
    found = {(max(a, c), min(b, d)) for a, b in own for c, d in others if a < d and c < b}
    merged: list[Interval] = []
    for low, high in sorted(found):
        if merged and low <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(high, merged[-1][1])
        else:
            merged.append((low, high))
    return merged


def clipped(span: AddressSpan, low: int, high: int) -> NDArray[np.int64] | None:
    """The addresses of the span in ``low`` .. ``high`` (the latter excluded); None where there are too many.

    Each loop is cut to the iterations whose inner loops can still reach the interval, so that little is expanded where two
    threads meet at the edges of their parts only.
    """
    if isinstance(span.source, AddressSet):
        every = addresses(span)
        return None if every is None else every[(every >= low) & (every < high)]
    depth = len(span.trips)
    coefs = (*span.source.address.coefs, *(0,) * depth)[:depth]
    values = np.array([span.source.address.const], dtype=np.int64)
    index = np.zeros((1, 0), dtype=np.int64)
    for level, (trip, coef) in enumerate(zip(span.trips, coefs, strict=True)):
        rest = hull(Affine(0, (*(0,) * (level + 1), *coefs[level + 1 :])), span.trips)
        if rest is None:
            return np.empty(0, dtype=np.int64)
        first, after = _iterations(values, _trips(trip, index), coef, low - rest[1], high - 1 - rest[0])
        times = np.maximum(after - first, 0)
        if times.sum() > LIMIT:
            return None
        inner = np.arange(times.sum()) - np.repeat(np.cumsum(times) - times, times) + np.repeat(first, times)
        index = np.column_stack([np.repeat(index, times, axis=0), inner])
        values = np.repeat(values, times) + coef * inner
    return values[(values >= low) & (values < high)]


def _trips(trip: Affine, index: NDArray[np.int64]) -> NDArray[np.int64]:
    coefs = np.array((*trip.coefs, *(0,) * index.shape[1])[: index.shape[1]], dtype=np.int64)
    result: NDArray[np.int64] = trip.const + index @ coefs
    return result


def _iterations(
    values: NDArray[np.int64], trips: NDArray[np.int64], coef: int, low: int, high: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The iterations i of 0 .. trips with ``low <= value + coef * i <= high``: the first, and the first after them."""
    zero = np.zeros_like(values)
    if coef == 0:
        return zero, np.where((values >= low) & (values <= high), trips, 0)
    if coef < 0:
        values, coef, low, high = -values, -coef, -high, -low
    return np.maximum(zero, -((values - low) // coef)), np.minimum(trips, (high - values) // coef + 1)


def line_masks(starts: NDArray[np.int64], size: int) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """The lines of accesses of ``size`` bytes at ``starts``, ascending, each once, with a bit for every byte used."""
    offset, line = starts % LINE, starts // LINE * LINE
    all_lines, all_masks = [], []
    for piece in range(-(-(LINE - 1 + size) // LINE)):
        low = np.maximum(offset - piece * LINE, 0)
        high = np.minimum(offset + size - piece * LINE, LINE)
        inside = high > low
        width = (high - low)[inside].astype(np.uint64)
        full = ~np.uint64(0) >> (np.uint64(LINE) - width)
        all_lines.append(line[inside] + piece * LINE)
        all_masks.append(full << low[inside].astype(np.uint64))
    lines, masks = np.concatenate(all_lines), np.concatenate(all_masks)
    order = np.argsort(lines, kind="stable")
    lines, masks = lines[order], masks[order]
    unique, first = np.unique(lines, return_index=True)
    joined = np.bitwise_or.reduceat(masks, first) if len(first) else masks
    return unique.astype(np.uint64), joined


def _judge(uses: Sequence[_ThreadUse], skipped: tuple[int, ...]) -> Sharing:
    if not uses:
        return Sharing(skipped=skipped)
    lines = np.unique(np.concatenate([use.lines for use in uses]))
    none = np.zeros(len(lines), dtype=np.uint64)
    once, twice, written, threads = none.copy(), none.copy(), none.copy(), np.zeros(len(lines), dtype=np.int64)
    writers, writer = np.zeros(len(lines), dtype=np.int64), np.full(len(lines), -1)
    for thread in sorted({use.thread for use in uses}):
        touched, mine = none.copy(), none.copy()
        for use in (u for u in uses if u.thread == thread):
            at = np.searchsorted(lines, use.lines)
            touched[at] |= use.masks
            if use.writes:
                mine[at] |= use.masks
        written |= mine
        writers += mine != 0
        writer[mine != 0] = thread
        twice |= once & touched
        once |= touched
        threads += touched != 0
    shared = (threads > 1) & (written != 0)
    exchanged = twice & written != 0
    false = shared & ~exchanged
    users: dict[int, int] = {}
    for use in uses:
        at = np.searchsorted(lines, use.lines)
        met = false[at] if use.writes else false[at] & ((writers[at] > 1) | (writer[at] != use.thread))
        if met.any():
            users[use.reference] = int(met.sum())
    return Sharing(tuple(lines[false].tolist()), tuple(lines[shared & exchanged].tolist()), users, skipped)
