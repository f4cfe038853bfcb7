"""The trace as a file.

``LATRACE\\n``, the version, then chunks: kind (4 bytes), packed and unpacked length (8 bytes each), CRC-32 of all that and
the packed bytes (4), packed bytes (zstd over MessagePack). The last chunk is ``END `` and holds the number of the others, so
a file that was cut between two chunks is noticed too. All integers are little-endian.
"""

from __future__ import annotations

import hashlib
import os
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import zstandard

from layout_advise.errors import TraceError
from layout_advise.layoutalgebra.nests import AddressSet, Affine, FoldedStream, Loop, Node, Point, Stream
from layout_advise.tracer.trace import Allocation, Mapping, Reference, Registers, Thread, Trace

MAGIC = b"LATRACE\n"
VERSION = 1
SUFFIX = ".latrace"

_FIELDS = struct.Struct("<4sQQ")
_LARGEST = 1 << 32  # unpacked bytes of a chunk that may be believed
_STREAMS_PER_CHUNK = 64


def write_trace(trace: Trace, path: Path) -> None:
    """Writes ``trace``; ``path`` is replaced at once or not at all. Raises :class:`TraceError` (disk full, no folder)."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with temporary.open("wb") as file:
            file.write(MAGIC + VERSION.to_bytes(4, "little"))
            count = 0
            for kind, content in _parts(trace):
                file.write(_chunk(kind, content))
                count += 1
            file.write(_chunk(b"END ", count))
        temporary.replace(path)
    except OSError as error:
        raise TraceError(
            f"the trace was not written to {path}", str(error), "free some space or choose another folder"
        ) from error
    finally:
        temporary.unlink(missing_ok=True)


def read_trace(path: Path) -> Trace:
    """The trace in the file. Raises :class:`TraceError` that names a foreign, damaged, truncated or other-version file."""
    head: dict[str, Any] = {}
    streams: list[Stream | None] = []
    tables: dict[bytes, list[Any]] = {}
    try:
        for kind, content in _chunks(path):
            if kind == b"HEAD":
                head = content
            elif kind == b"STRM":
                streams += [_stream(item) for item in content]
            else:
                tables.setdefault(kind, []).extend(content)
        gpr, rip, rflags, mxcsr, fs_base, vector = head["registers"]
        return Trace(
            symbol=head["symbol"],
            call=head["call"],
            backend=head["backend"],
            references=tuple(Reference(*row) for row in tables.get(b"REFS", ())),
            streams=tuple(streams),
            accesses=head["accesses"],
            truncated=head["truncated"],
            registers=Registers(tuple(gpr), rip, rflags, mxcsr, fs_base, tuple(vector)),
            mappings=tuple(Mapping(*row) for row in tables.get(b"MAPS", ())),
            allocations=tuple(Allocation(*row) for row in tables.get(b"HEAP", ())),
            threads=tuple(Thread(*row) for row in tables.get(b"THRD", ())),
        )
    except (KeyError, TypeError, ValueError, IndexError, msgspec.MsgspecError) as error:
        raise _damaged(path, f"its contents do not fit ({error})") from error


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


def _damaged(path: Path, why: str) -> TraceError:
    return TraceError(f"the trace {path} is damaged", why, "trace again")


def _parts(trace: Trace) -> Iterator[tuple[bytes, Any]]:
    registers = trace.registers
    yield (
        b"HEAD",
        {
            "symbol": trace.symbol,
            "call": trace.call,
            "backend": trace.backend,
            "accesses": trace.accesses,
            "truncated": trace.truncated,
            "registers": [
                *(registers.gpr, registers.rip, registers.rflags, registers.mxcsr, registers.fs_base),
                registers.vector,
            ],
        },
    )
    yield b"REFS", [[r.id, r.pc, r.operand, r.kind, r.bytes, *([r.thread] if r.thread else [])] for r in trace.references]
    yield b"MAPS", [[m.start, m.end, m.permissions, m.offset, m.path] for m in trace.mappings]
    yield b"HEAP", [[a.address, a.bytes, a.order, a.site] for a in trace.allocations]
    if trace.threads:
        yield b"THRD", [[t.number, t.data, t.rsp, t.fs_base, t.stack] for t in trace.threads]
    group: list[Any] = []
    room = 0
    for stream in trace.streams:
        group.append(_plain(stream))
        room += len(stream.bitmap or b"") if isinstance(stream, AddressSet) else 0
        if len(group) == _STREAMS_PER_CHUNK or room > 1 << 26:
            yield b"STRM", group
            group, room = [], 0
    yield b"STRM", group


def _plain(stream: Stream | None) -> Any:
    if stream is None:
        return None
    if isinstance(stream, AddressSet):
        return ["set", stream.minimum, stream.maximum, stream.gcd, stream.count, stream.bitmap]
    return ["nest", stream.count, [_plain_node(node) for node in stream.nodes]]


def _plain_node(node: Node) -> list[Any]:
    if isinstance(node, Point):
        return [node.address.const, *node.address.coefs]
    return [[node.trip.const, *node.trip.coefs], *(_plain_node(child) for child in node.body)]


def _stream(item: Any) -> Stream | None:
    if item is None:
        return None
    if item[0] == "set":
        return AddressSet(*item[1:])
    return FoldedStream(tuple(_node(node) for node in item[2]), item[1])


def _node(item: list[Any]) -> Node:
    if isinstance(item[0], list):
        return Loop(Affine(item[0][0], tuple(item[0][1:])), tuple(_node(child) for child in item[1:]))
    return Point(Affine(item[0], tuple(item[1:])))


def _chunk(kind: bytes, content: Any) -> bytes:
    plain = msgspec.msgpack.encode(content)
    packed = zstandard.ZstdCompressor(level=3).compress(plain)
    head = _FIELDS.pack(kind, len(packed), len(plain))
    return head + zlib.crc32(head + packed).to_bytes(4, "little") + packed


def _chunks(path: Path) -> Iterator[tuple[bytes, Any]]:
    """Every chunk but the last, each checked; the last is checked too."""
    try:
        with path.open("rb") as file:
            start = file.read(len(MAGIC) + 4)
            if start[: len(MAGIC)] != MAGIC:
                raise TraceError(f"{path} is not a trace of layout-advise", f"it begins with {start[:8]!r}", "trace again")
            version = int.from_bytes(start[len(MAGIC) :], "little")
            if len(start) == len(MAGIC) + 4 and version != VERSION:
                raise TraceError(f"the trace {path} has version {version}", f"this program reads {VERSION}", "trace again")
            count = 0
            while True:
                header = file.read(_FIELDS.size + 4)
                if len(header) != _FIELDS.size + 4:
                    raise _damaged(path, "it ends too early")
                kind, packed, plain = _FIELDS.unpack(header[:-4])
                data = file.read(min(packed, os.fstat(file.fileno()).st_size))
                if len(data) != packed:
                    raise _damaged(path, "it ends too early")
                if zlib.crc32(header[:-4] + data) != int.from_bytes(header[-4:], "little") or plain > _LARGEST:
                    raise _damaged(path, f"the checksum of chunk {count} is wrong")
                content = msgspec.msgpack.decode(zstandard.ZstdDecompressor().decompress(data, max_output_size=plain))
                if kind == b"END ":
                    if content != count or file.read(1):
                        raise _damaged(path, "chunks are missing or follow its end")
                    return
                yield kind, content
                count += 1
    except zstandard.ZstdError as error:
        raise _damaged(path, str(error)) from error
    except OSError as error:
        raise TraceError(f"the trace {path} cannot be read", str(error)) from error
