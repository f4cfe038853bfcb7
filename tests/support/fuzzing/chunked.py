"""Damage to traces behind their checksums: the contents of chunks are changed and packed again."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import msgspec

from layout_advise.tracer.trace.chunks import END, MAGIC, VERSION, pack, read_chunks
from tests.support.fuzzing import raw_bytes, trees

Chunks = list[tuple[bytes, Any]]


def chunks_of(path: Path) -> Chunks:
    """The chunks of a real trace."""
    return list(read_chunks(path))


def damaged_trace(random: Random, chunks: Chunks) -> bytes:
    """A trace with one chunk's contents damaged, or chunks exchanged, or its bytes damaged."""
    found = list(chunks)
    kind = random.random()
    at = random.randrange(len(found))
    if kind < 0.75:
        name, content = found[at]
        found[at] = name, trees.damaged(random, _plain(content))
    elif kind < 0.8:
        del found[at]
    elif kind < 0.85:
        found.insert(at, random.choice(chunks))
    data = MAGIC + VERSION.to_bytes(4, "little") + b"".join(_packed(name, content) for name, content in found[:-1])
    last = found[-1][1]
    whole = last if not isinstance(last, dict) or random.random() < 0.05 else {**last, "chunks": len(found) - 1}
    data += _packed(found[-1][0] if kind < 0.98 else END, whole)
    return data if kind < 0.9 else raw_bytes.damaged(random, data)


def _plain(content: Any) -> Any:
    return msgspec.to_builtins(content, builtin_types=(bytes,))


def _packed(name: bytes, content: Any) -> bytes:
    try:
        return pack(name, content)
    except (OverflowError, RecursionError, TypeError, ValueError, msgspec.MsgspecError):
        return pack(name, [])
