"""The trace as a file of chunks (:mod:`layout_advise.tracer.trace.chunks`), written so that every whole prefix is worth
reading.

``HEAD`` says what was traced and how much is to come; ``MAPS``, ``CTRL`` (the order of execution), ``TCTL`` (that of each
thread of a team, with a version of its own) and ``TABL`` (places, loops, objects: every table that :class:`Trace` has
besides) follow; then the references in groups, each with its streams
(``REFS``), and the heap blocks in groups (``HEAP``). ``END`` tells whether something was left out for want of room.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from layout_advise.errors import TraceError
from layout_advise.layoutalgebra.sets.nests import Stream
from layout_advise.tracer.trace.chunks import ChunkWriter, CutError, pack, read_chunks
from layout_advise.tracer.trace.stream_codec import bounds, plain_nodes, plain_stream, weight
from layout_advise.tracer.trace.trace import (
    Control,
    Reference,
    Trace,
)
from layout_advise.tracer.trace.trace_parts import TABLES, TEAM_VERSION, TraceParts

_REFERENCES_PER_CHUNK = 64
_BYTES_PER_CHUNK = 1 << 20
_BLOCKS_PER_CHUNK = 1 << 14
_END_ROOM = 1 << 10  # bytes kept for the last chunk
_REFERENCE = tuple(f.name for f in fields(Reference))


@dataclass(frozen=True, slots=True)
class TraceFile:
    """The contents of a trace file. ``missing`` says in one line what is not there where it was cut, else it is ``None``."""

    trace: Trace
    missing: str | None = None


def write_trace(trace: Trace, path: Path, max_bytes: int | None = None) -> Trace:
    """Writes ``trace`` to ``path``, chunk by chunk, and returns the trace that the file holds.

    That is ``trace`` itself unless the file would pass ``max_bytes``: then the streams that find no room keep their bounds
    only, the result is ``truncated``, and its ``limits`` say so. Raises :class:`TraceError` (disk full, no folder,
    ``max_bytes`` too small for anything); the chunks that were written stay readable.
    """
    with ChunkWriter(path) as writer:
        for kind, content in _tables(trace):
            _must_fit(writer, pack(kind, content), max_bytes)
        streams = _write_references(writer, trace, max_bytes)
        blocks = _write_blocks(writer, trace, max_bytes)
        cut = [i for i, stream in enumerate(trace.streams) if streams[i] is not stream]
        limits = _left_out(len(cut), len(streams), len(trace.allocations) - blocks, max_bytes)
        writer.finish({"limits": limits})
    if not limits:
        return trace
    kept = trace.allocations[:blocks]
    return replace(trace, streams=tuple(streams), allocations=kept, truncated=True, limits=(*trace.limits, *limits))


def read_trace(path: Path) -> Trace:
    """The trace in a whole file. Raises :class:`TraceError` that names a foreign, damaged, cut or other-version file."""
    parts = TraceParts(path)
    for kind, content in read_chunks(path):
        parts.add(kind, content)
    return parts.trace()


def read_what_is_there(path: Path) -> TraceFile:
    """The trace up to the last whole chunk of the file. Raises :class:`TraceError` where that is nothing, and for foreign,
    damaged and other-version files."""
    parts = TraceParts(path)
    try:
        for kind, content in read_chunks(path):
            parts.add(kind, content)
    except CutError as cut:
        if parts.start is None:
            raise
        found = parts.trace(whole=False)
        there, expected = len(found.references), parts.start.references
        blocks = f"{len(found.allocations)} of {parts.start.blocks} heap blocks"
        missing = f"only the first {cut.at:,} bytes are whole: {there} of {expected} references, {blocks}"
        return TraceFile(replace(found, truncated=True), missing)
    return TraceFile(parts.trace())


def checksum(path: Path) -> str:
    """BLAKE2b of the whole file in hex, 128 bits: equal for equal traces. Raises :class:`TraceError`."""
    digest = hashlib.blake2b(digest_size=16)
    try:
        with path.open("rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
    except OSError as error:
        raise TraceError(f"the trace {path} cannot be read", str(error)) from error
    return digest.hexdigest()


# ---- writing ----


def _tables(trace: Trace) -> Iterator[tuple[bytes, Any]]:
    registers = trace.registers
    yield (
        b"HEAD",
        {
            "symbol": trace.symbol,
            "call": trace.call,
            "calls": trace.calls,
            "backend": trace.backend,
            "accesses": trace.accesses,
            "truncated": trace.truncated,
            "limits": trace.limits,
            "registers": [
                *(registers.gpr, registers.rip, registers.rflags, registers.mxcsr, registers.fs_base),
                registers.vector,
            ],
            "references": len(trace.references),
            "blocks": len(trace.allocations),
        },
    )
    yield b"MAPS", [[m.start, m.end, m.permissions, m.offset, m.path] for m in trace.mappings]
    for name in TABLES:
        if getattr(trace, name):
            yield b"TABL", {"name": name, "rows": getattr(trace, name)}
    if trace.control is not None:
        yield b"CTRL", _plain_control(trace.control)
    if trace.team_control:
        orders = [_plain_control(control) for control in trace.team_control]
        yield b"TCTL", {"version": TEAM_VERSION, "threads": orders}


def _plain_control(control: Control) -> dict[str, Any]:
    nodes = None if control.nodes is None else plain_nodes(control.nodes)
    return {"nodes": nodes, "pieces": control.pieces, "reason": control.reason}


def _must_fit(writer: ChunkWriter, chunk: bytes, max_bytes: int | None) -> None:
    if not _fits(writer, chunk, max_bytes):
        needed = writer.written + len(chunk) + _END_ROOM
        why = f"--max-bytes {max_bytes} is too little: {needed} bytes are needed for its tables alone"
        raise TraceError(f"the trace was not written to {writer.path}", why, "allow more")
    writer.add(chunk)


def _fits(writer: ChunkWriter, chunk: bytes, max_bytes: int | None) -> bool:
    return max_bytes is None or writer.written + len(chunk) + _END_ROOM <= max_bytes


def _write_references(writer: ChunkWriter, trace: Trace, max_bytes: int | None) -> list[Stream | None]:
    """All references in groups; returns the streams as written. The bounds of the groups to come keep their room."""
    written: list[Stream | None] = []
    least = [0] if max_bytes is None else [len(_bare(trace, first, last)) for first, last in _groups(trace)]
    to_come = sum(least)
    for number, (first, last) in enumerate(_groups(trace)):
        streams = list(trace.streams[first:last])
        chunk = _group(trace, first, last, streams)
        if max_bytes is not None:
            to_come -= least[number]
            heaviest = sorted(range(len(streams)), key=lambda k: weight(streams[k]))
            while heaviest and not _fits(writer, chunk, max_bytes - to_come):
                k = heaviest.pop()
                streams[k] = bounds(streams[k])
                chunk = _group(trace, first, last, streams)
        _must_fit(writer, chunk, max_bytes)
        written += streams
    return written


def _bare(trace: Trace, first: int, last: int) -> bytes:
    return _group(trace, first, last, [bounds(s) for s in trace.streams[first:last]])


def _groups(trace: Trace) -> Iterator[tuple[int, int]]:
    """First and last reference (exclusive) of every chunk."""
    first = room = 0
    for position, stream in enumerate(trace.streams):
        room += weight(stream)
        if position + 1 - first == _REFERENCES_PER_CHUNK or room > _BYTES_PER_CHUNK:
            yield first, position + 1
            first, room = position + 1, 0
    if first < len(trace.streams):
        yield first, len(trace.streams)


def _group(trace: Trace, first: int, last: int, streams: list[Stream | None]) -> bytes:
    rows = [[getattr(reference, name) for name in _REFERENCE] for reference in trace.references[first:last]]
    return pack(b"REFS", {"columns": _REFERENCE, "rows": rows, "streams": [plain_stream(s) for s in streams]})


def _write_blocks(writer: ChunkWriter, trace: Trace, max_bytes: int | None) -> int:
    """As many of the heap blocks as there is room for; how many that is."""
    for first in range(0, len(trace.allocations), _BLOCKS_PER_CHUNK):
        group = trace.allocations[first : first + _BLOCKS_PER_CHUNK]
        chunk = pack(b"HEAP", [[a.address, a.bytes, a.order, a.site, *([a.stack] if a.stack else [])] for a in group])
        if not _fits(writer, chunk, max_bytes):
            return first
        writer.add(chunk)
    return len(trace.allocations)


def _left_out(cut: int, references: int, blocks: int, max_bytes: int | None) -> tuple[str, ...]:
    lines = []
    if cut:
        lines.append(f"--max-bytes {max_bytes}: of {cut} of {references} references the file keeps bounds and count only")
    if blocks:
        lines.append(f"--max-bytes {max_bytes}: {blocks} heap blocks are left out of the file")
    return tuple(lines)
