"""The records of a check build against the trace: gate (a), nothing of a structure is left unmoved."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from layout_advise.layoutalgebra.sets.nests import FoldedStream, Stream
from layout_advise.mockup.evidence.binding import keys_made
from layout_advise.mockup.evidence.streams import contains, expand_array, hull
from layout_advise.mockup.ir.lifted import Lifted, OpaqueCall, everything
from layout_advise.mockup.machine.openmp_runtime import retried
from layout_advise.tracer.trace.trace import Reference, Thread, Trace

FRAME_BYTES = 8 << 20
_ADDRESS = np.uint64((1 << 48) - 1)


def check_records(
    records: bytes | NDArray[np.uint64], trace: Trace, lifted: Lifted, *, complete: bool = True
) -> tuple[str, ...]:
    """Problems found: per reference the recorded addresses must be the traced ones, in order.

    ``records`` are words ``address | reference id << 48``. References in ``lifted.skipped`` do not run in the mock-up,
    those in ``lifted.thinned`` and ``lifted.native`` not each time. ``complete`` False (the buffer was full) or a truncated
    trace: only the common beginning is compared.
    """
    addresses, sites = _by_site(np.frombuffer(records, np.uint64) if isinstance(records, bytes) else records)
    again = retried(lifted.body)
    skipped = {(pc, operand) for pc, operand, _ in lifted.skipped} | _frame(trace, lifted)
    fresh, thinned = _fresh(trace, lifted), _fewer(trace, lifted)
    problems: list[str] = []
    if sites.size and sites[-1] >= len(trace.references):
        problems.append("an access was made that the trace does not know")
    for reference, stream in zip(trace.references, trace.streams, strict=True):
        own = addresses[np.searchsorted(sites, reference.id) : np.searchsorted(sites, reference.id, "right")]
        if (reference.pc, reference.operand) in skipped:
            continue
        if stream is None:
            if own.size and not trace.truncated:
                problems.append(_problem(reference, f"ran {own.size} times, never in the trace"))
        elif (reference.pc, reference.operand) in again:
            problems += _within(reference, own, (stream,))
        elif (reference.pc, reference.operand) in thinned:
            problems += _thinned(reference, own, stream, fresh=(reference.pc, reference.operand) in fresh)
        elif isinstance(stream, FoldedStream) and (reference.pc, reference.operand) not in fresh:
            problems += _ordered(reference, own, expand_array(stream) & _ADDRESS, complete and not trace.truncated)
        elif own.size != stream.count and complete and not trace.truncated:
            problems.append(_problem(reference, f"ran {own.size} times, {stream.count} times in the trace"))
        elif not trace.truncated and (reference.pc, reference.operand) not in fresh and not contains(stream, own):
            problems.append(_problem(reference, "touched an address that the trace does not have"))
    return tuple(problems)


def check_shared(
    records: NDArray[np.uint64], threads: Sequence[Trace], lifted: Lifted, *, complete: bool = True
) -> tuple[str, ...]:
    """As :func:`check_records` where the runtime shares the work out anew in each run: ``records`` are those of all threads,
    ``threads`` the trace of each. Per reference all threads together must make the same accesses, in any order; those to
    frames at the same places in them, no matter whose."""
    frames = [thread for t in threads for thread in t.threads]
    addresses, sites = _by_site(records)
    again = retried(lifted.body)
    skipped = {(pc, operand) for pc, operand, _ in lifted.skipped}.union(*(_frame(t, lifted) for t in threads))
    thinned = _fewer(threads[0], lifted)
    problems: list[str] = []
    for k, reference in enumerate(threads[0].references):
        key = reference.pc, reference.operand
        if key in skipped:
            continue
        own = addresses[np.searchsorted(sites, k) : np.searchsorted(sites, k, "right")]
        streams = [stream for t in threads if (stream := t.streams[k]) is not None]
        folded = [stream for stream in streams if isinstance(stream, FoldedStream)]
        traced = sum(stream.count for stream in streams)
        if complete and (own.size > traced if key in thinned else own.size != traced) and key not in again:
            problems.append(_problem(reference, f"ran {own.size} times, {traced} times in the trace"))
        elif complete and len(folded) == len(streams) and key not in again and key not in thinned:
            made = np.concatenate([np.empty(0, np.uint64), *(expand_array(s) & _ADDRESS for s in folded)])
            if not np.array_equal(np.sort(_in_any_frame(own, frames)), np.sort(_in_any_frame(made, frames))):
                problems.append(_problem(reference, "went to other addresses than in the trace"))
        else:
            problems += _within(reference, own, streams, frames)
    return tuple(problems)


def _in_any_frame(addresses: NDArray[np.uint64], frames: Sequence[Thread]) -> NDArray[np.uint64]:
    """Addresses in the threads' frames as distances from the return address; they are no addresses of anything else."""
    found = addresses.copy()
    for thread in frames:
        own = (addresses >= np.uint64(thread.stack)) & (addresses < np.uint64(thread.end))
        found[own] = addresses[own] - np.uint64(thread.rsp)
    return found


def _by_site(words: NDArray[np.uint64]) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Addresses and reference ids of records, by id and then in their order."""
    sites = (words >> np.uint64(48)).astype(np.int64)
    order = np.argsort(sites, kind="stable")
    return (words & _ADDRESS)[order], sites[order]


def _thinned(reference: Reference, own: NDArray[np.uint64], stream: Stream, *, fresh: bool) -> list[str]:
    """Some of the traced accesses, in their order; of those to memory that the call has allocated only how many."""
    if own.size > stream.count:
        return [_problem(reference, f"ran {own.size} times, {stream.count} times in the trace")]
    if fresh:
        return []
    if not isinstance(stream, FoldedStream):
        return _within(reference, own, (stream,))
    left = iter((expand_array(stream) & _ADDRESS).tolist())
    strange = [address for address in own.tolist() if address not in left]
    return [_problem(reference, f"went to {strange[0]:#x}, in the trace not then")] if strange else []


def _within(
    reference: Reference, own: NDArray[np.uint64], streams: Sequence[Stream], frames: Sequence[Thread] = ()
) -> list[str]:
    """How often an access ran is left open: where it went must be known."""
    left = np.unique(own)
    for stream in streams:
        if isinstance(stream, FoldedStream):
            known = _in_any_frame(expand_array(stream) & _ADDRESS, frames)
            left = left[~np.isin(_in_any_frame(left, frames), known)]
        else:
            left = np.array([a for k, a in enumerate(left) if not contains(stream, left[k : k + 1])], np.uint64)
    return [_problem(reference, "touched an address that the trace does not have")] if left.size else []


def _fewer(trace: Trace, lifted: Lifted) -> set[tuple[int, int]]:
    """References that the mock-up makes less often: some copies of their code do not, or calls that stay calls may."""
    return set(lifted.thinned) | {(r.pc, r.operand) for r in trace.references if lifted.runs_natively(r.pc)}


def _frame(trace: Trace, lifted: Lifted) -> set[tuple[int, int]]:
    """References that stay within the hotspot's own frame or its return address and that the lifted code does not make:
    ``ret`` reads the return address, which is no part of the computation."""
    made = keys_made(lifted.body)
    top = trace.registers.gpr[4]
    found = set()
    for reference, stream in zip(trace.references, trace.streams, strict=True):
        if stream is None or (reference.pc, reference.operand) in made:
            continue
        low, high = hull(stream)
        if low >= top - FRAME_BYTES and high + reference.bytes <= top + 8:
            found.add((reference.pc, reference.operand))
    return found


def _fresh(trace: Trace, lifted: Lifted) -> set[tuple[int, int]]:
    """References that reach memory which calls that stay calls may have allocated: beside the blocks of the entry. It lies
    elsewhere in each process, as loading a mock-up allocates too."""
    if not any(isinstance(item, OpaqueCall) for item in everything(lifted.body)):
        return set()
    starts = np.array([a.address for a in trace.allocations], np.int64)
    ends = np.array([a.address + a.bytes for a in trace.allocations], np.int64)
    heaps = [m for m in trace.mappings if m.path == "[heap]" or np.any((starts >= m.start) & (starts < m.end))]

    def is_fresh(address: int) -> bool:
        at = int(np.searchsorted(starts, address, "right")) - 1
        if at >= 0 and address < ends[at]:
            return False
        mapping = next((m for m in trace.mappings if m.start <= address < m.end), None)
        return mapping is None or mapping in heaps

    found = set()
    for reference, stream in zip(trace.references, trace.streams, strict=True):
        if stream is not None and any(map(is_fresh, hull(stream))):
            found.add((reference.pc, reference.operand))
    return found


def _ordered(reference: Reference, own: NDArray[np.uint64], traced: NDArray[np.uint64], complete: bool) -> list[str]:
    if complete and own.size != traced.size:
        return [_problem(reference, f"ran {own.size} times, {traced.size} times in the trace")]
    common = min(own.size, traced.size)
    wrong = np.flatnonzero(own[:common] != traced[:common])
    if wrong.size == 0:
        return []
    k = int(wrong[0])
    return [_problem(reference, f"execution {k} went to {int(own[k]):#x}, in the trace to {int(traced[k]):#x}")]


def _problem(reference: Reference, text: str) -> str:
    return f"the reference at {reference.pc:#x} {text}"
