"""A file of chunks that is readable up to its last whole chunk, however its writer ended.

``LATRACE\\n``, the version (4 bytes), then chunks: kind (4 bytes), packed and unpacked length (8 bytes each), CRC-32 of the
packed bytes and CRC-32 of these 24 bytes (4 each), packed bytes (zstd over MessagePack). The last chunk is ``END ``. All
integers are little-endian. A chunk goes out in one write, so a kill between two system calls leaves whole chunks; the
header has a checksum of its own, so that a file that was cut is told from one that was damaged.
"""

from __future__ import annotations

import os
import struct
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

import msgspec

from layout_advise.errors import TraceError

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

MAGIC = b"LATRACE\n"
VERSION = 2
END = b"END "

_FIELDS = struct.Struct("<4sQQI")
_HEADER = _FIELDS.size + 4
_START = len(MAGIC) + 4
_LARGEST = 1 << 32  # unpacked bytes of a chunk that may be believed


class CutError(TraceError):
    """The file ends before its last chunk does: what came before ``at`` (bytes) is whole."""

    def __init__(self, path: Path, at: int, size: int) -> None:
        self.at = at
        why = f"it ends too early: the first {at} of its {size} bytes are whole, and its last chunk is missing"
        super().__init__(f"the trace {path} is incomplete", why, "trace again")


def damaged(path: Path, why: str) -> TraceError:
    """The error for a file whose contents cannot be what was written."""
    return TraceError(f"the trace {path} is damaged", why, "trace again")


def pack(kind: bytes, content: Any) -> bytes:
    """One chunk. ``content`` is anything that msgspec encodes."""
    plain = msgspec.msgpack.encode(content)
    packed: bytes = zstd.compress(plain, level=3)
    head = _FIELDS.pack(kind, len(packed), len(plain), zlib.crc32(packed))
    return head + zlib.crc32(head).to_bytes(4, "little") + packed


class ChunkWriter:
    """Writes ``path`` chunk by chunk, in place. After an error, or without :meth:`finish`, the whole chunks stay.

    Raises :class:`TraceError` (disk full, no folder, no permission).
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.written = 0
        self.chunks = 0
        self._file: BinaryIO | None = None

    def __enter__(self) -> Self:
        try:
            self._file = self.path.open("wb", buffering=0)
        except OSError as error:
            raise self._refused(error) from error
        self._write(MAGIC + VERSION.to_bytes(4, "little"))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def add(self, chunk: bytes) -> None:
        """Write one chunk that :func:`pack` made."""
        self._write(chunk)
        self.chunks += 1

    def finish(self, content: dict[str, Any]) -> None:
        """Write the last chunk; the file is whole then. The number of the others is added to ``content``."""
        self._write(pack(END, {"chunks": self.chunks, **content}))

    def _write(self, data: bytes) -> None:
        assert self._file is not None, "a ChunkWriter is used as a context manager"
        view = memoryview(data)
        try:
            while view:
                view = view[self._file.write(view) :]
        except OSError as error:
            self._shorten()
            raise self._refused(error) from error
        self.written += len(data)

    def _shorten(self) -> None:
        """Back to the last whole chunk; where that fails, the reader finds it by itself."""
        assert self._file is not None
        try:
            os.ftruncate(self._file.fileno(), self.written)
        except OSError:
            return

    def _refused(self, error: OSError) -> TraceError:
        kept = f"; its first {self.written:,} bytes are whole" if self.chunks else ""
        why = f"{error.strerror or error}{kept}"
        return TraceError(f"the trace was not written to {self.path}", why, "free some space or choose another folder")


def read_chunks(path: Path) -> Iterator[tuple[bytes, Any]]:
    """Every chunk, each checked, ``END`` included. Raises :class:`CutError` after the last whole chunk of a file without
    its end, :class:`TraceError` by name for a foreign file, another version's, or a damaged one."""
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            _check_start(path, file.read(_START))
            count, at = 0, _START
            while True:
                header = file.read(_HEADER)
                if len(header) < _HEADER:
                    raise CutError(path, at, size)
                kind, packed, plain, crc = _FIELDS.unpack_from(header)
                if zlib.crc32(header[:-4]) != int.from_bytes(header[-4:], "little") or plain > _LARGEST:
                    raise damaged(path, f"the header of chunk {count} (byte {at}) has a wrong checksum")
                data = file.read(min(packed, size))
                if len(data) != packed:
                    raise CutError(path, at, size)
                if zlib.crc32(data) != crc:
                    raise damaged(path, f"chunk {count} (byte {at}) has a wrong checksum")
                content = _unpack(path, data, plain)
                if kind == END and (not isinstance(content, dict) or content.get("chunks") != count or file.read(1)):
                    raise damaged(path, "chunks are missing or follow its end")
                yield kind, content
                if kind == END:
                    return
                count, at = count + 1, at + _HEADER + packed
    except OSError as error:
        raise TraceError(f"the trace {path} cannot be read", str(error)) from error


def _check_start(path: Path, start: bytes) -> None:
    if start[: len(MAGIC)] != MAGIC:
        raise TraceError(f"{path} is not a trace of layout-advise", f"it begins with {start[:8]!r}", "trace again")
    if len(start) < _START:
        raise CutError(path, 0, len(start))
    version = int.from_bytes(start[len(MAGIC) :], "little")
    if version != VERSION:
        older = "an older" if version < VERSION else "a newer"
        raise TraceError(
            f"the trace {path} has version {version}",
            f"{older} layout-advise wrote it; this one reads {VERSION}",
            "trace again",
        )


def _unpack(path: Path, data: bytes, plain: int) -> Any:
    """The content that was packed; no more memory than ``plain`` bytes is taken, whatever the packed bytes say."""
    reader = zstd.ZstdDecompressor()
    try:
        content = reader.decompress(data, max_length=plain)
        if not reader.eof and not (reader.decompress(b"", max_length=1) == b"" and reader.eof):
            raise damaged(path, f"a chunk does not unpack to the {plain} bytes that it should")
        return msgspec.msgpack.decode(content)
    except (zstd.ZstdError, msgspec.MsgspecError) as error:
        raise damaged(path, str(error)) from error
