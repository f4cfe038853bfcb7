"""From raw records to folded streams: the Python side of ``tracer/nlr``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import layout_advise.tracer._nlr as _nlr
from layout_advise.errors import TraceError
from layout_advise.layoutalgebra.sets.nests import AddressSet, Affine, FoldedStream, Loop, Node, Point, Stream
from layout_advise.tracer.folding.clusters import ADDRESS_BITS, with_clusters

BITMAP_BUDGET = 1 << 30
"""Bytes that the bitmaps of all streams of one trace may take together; a stream that finds none left is inexact."""

NODE_WORDS: int = _nlr.lib.NODE_WORDS
"""64-bit words of a node in a table: arity, depth, constant, coefficients (that of the nearest loop first)."""

_FOLDING, _SET = 0, 1
_CHUNK = 1 << 22  # records per call into C, so that Ctrl-C is answered between chunks


def fold_records(
    records: NDArray[np.uint64] | Path, references: int, bitmap_budget: int = BITMAP_BUDGET
) -> list[Stream | None]:
    """Folds ``records`` (an array of uint64, or a file of them) by site, in one pass and bounded memory.

    Returns one stream per reference, ``None`` where the site never occurs. Raises :class:`TraceError` at a site number
    that is not below ``references``, or for a file that is not a whole number of records. Sets that one bitmap would be too
    large for are looked for once more (:mod:`layout_advise.tracer.folding.clusters`).
    """
    data = open_records(records) if isinstance(records, Path) else np.ascontiguousarray(records, dtype=np.uint64)
    with _folder(references, bitmap_budget) as folder:
        for start in range(0, len(data), _CHUNK):
            part = data[start : start + _CHUNK]
            taken = _nlr.lib.folder_feed(folder, _nlr.ffi.from_buffer("uint64_t[]", part), len(part))
            if taken != len(part):
                site = int(part[taken]) >> ADDRESS_BITS
                raise TraceError(
                    "the trace is damaged", f"record {start + taken} names site {site} of {references}", "trace again"
                )
        _nlr.lib.folder_finish(folder)
        found = [_stream(folder, i) for i in range(references)]
    return with_clusters(data, found)


def fold(addresses: NDArray[np.uint64] | list[int]) -> Stream:
    """Folds one stream of addresses (below 2**48). An empty one is a :class:`FoldedStream` without nodes."""
    stream = fold_records(np.asarray(addresses, dtype=np.uint64), 1)[0]
    return FoldedStream((), 0) if stream is None else stream


def fold_parts(parts: Iterable[NDArray[np.uint64]]) -> FoldedStream | None:
    """Folds one stream given in parts, and gives up with ``None`` as soon as it turns out not to fold."""
    with _folder(1, 0) as folder:
        for part in parts:
            for start in range(0, len(part), _CHUNK):
                piece = np.ascontiguousarray(part[start : start + _CHUNK])
                _nlr.lib.folder_feed(folder, _nlr.ffi.from_buffer("uint64_t[]", piece), len(piece))
                if _nlr.lib.folder_state(folder, 0) != _FOLDING:
                    return None
        _nlr.lib.folder_finish(folder)
        found = _stream(folder, 0)
        return found if isinstance(found, FoldedStream) else None


@contextmanager
def _folder(references: int, budget: int) -> Iterator[Any]:
    folder = _nlr.lib.folder_new(references, budget)
    if folder == _nlr.ffi.NULL:
        raise TraceError("the trace was not folded", f"no memory for {references} streams", "free some memory")
    try:
        yield folder
    finally:
        _nlr.lib.folder_free(folder)


def open_records(path: Path) -> NDArray[np.uint64]:
    """The file's records without reading them into memory."""
    try:
        size = path.stat().st_size
        if size % 8:
            raise TraceError("the trace is damaged", f"{path} ends within a record", "trace again")
        return np.memmap(path, dtype=np.uint64, mode="r") if size else np.empty(0, dtype=np.uint64)
    except OSError as error:
        raise TraceError("the records cannot be read", str(error)) from error


def _stream(folder: Any, index: int) -> Stream | None:
    lib, ffi = _nlr.lib, _nlr.ffi
    count = lib.folder_count(folder, index)
    if not count:
        return None
    state = lib.folder_state(folder, index)
    if state == _FOLDING:
        words = np.empty((lib.folder_nodes(folder, index), lib.NODE_WORDS), dtype=np.int64)
        lib.folder_copy_nodes(folder, index, ffi.from_buffer("int64_t[]", words, require_writable=True))
        return FoldedStream(nodes_of_rows(words.tolist()), count)
    limits = ffi.new("uint64_t[3]")
    lib.folder_limits(folder, index, limits)
    bitmap = None
    if state == _SET:
        data = bytearray(lib.folder_bitmap_bytes(folder, index))
        lib.folder_copy_bitmap(folder, index, ffi.from_buffer("uint8_t[]", data, require_writable=True))
        bitmap = bytes(data)
    return AddressSet(limits[0], limits[1], limits[2], count, bitmap)


def nodes_of_rows(rows: list[list[int]]) -> tuple[Node, ...]:
    """The nests of a table of nodes in preorder, each of ``NODE_WORDS`` integers."""
    nodes: list[Node] = []
    at = 0
    while at < len(rows):
        node, at = _node(rows, at)
        nodes.append(node)
    return tuple(nodes)


def _node(rows: list[list[int]], at: int) -> tuple[Node, int]:
    """The node at row ``at`` (preorder) and the row after it. In C the nearest loop's coefficient comes first."""
    arity, depth, constant = rows[at][:3]
    coefs = rows[at][3 : 3 + depth][::-1]
    while coefs and not coefs[-1]:
        coefs.pop()
    affine = Affine(constant, tuple(coefs))
    at += 1
    if not arity:
        return Point(affine), at
    body: list[Node] = []
    for _ in range(arity):
        node, at = _node(rows, at)
        body.append(node)
    return Loop(affine, tuple(body)), at
