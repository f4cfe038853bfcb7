"""Copies of arrays at given addresses of this process, for code that has these addresses in it."""

from __future__ import annotations

import mmap
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
from cffi import FFI
from numpy.typing import NDArray

from layout_advise.errors import MockupError

_MAP_FIXED_NOREPLACE = 0x100000
_FAILED = (1 << 64) - 1
_ffi = FFI()
_ffi.cdef("void *mmap(void *, size_t, int, int, int, long); int munmap(void *, size_t);")


@contextmanager
def at_addresses(blocks: Sequence[tuple[int, NDArray[Any]]]) -> Iterator[None]:
    """While it is entered the bytes of each array (C-contiguous) lie at its address; then they are copied back.

    An array that lies there already is used in place; one that cannot be written is not copied back. Raises
    :class:`MockupError` where this process has other memory at one of the addresses, or where two blocks overlap.
    """
    moved = sorted((b for b in blocks if b[1].ctypes.data != b[0] and b[1].nbytes), key=lambda block: block[0])
    for (first, array), (second, _) in pairwise(moved):
        if first + array.nbytes > second:
            raise MockupError("two arrays cannot be placed", f"the blocks at {first:#x} and at {second:#x} overlap")
    with ExitStack() as mapped:
        for start, end in _pages(moved):
            _map(start, end - start)
            mapped.callback(_libc().munmap, _ffi.cast("void *", start), end - start)
        for address, array in moved:
            bytes_at(address, array.nbytes)[:] = bytes_at(array.ctypes.data, array.nbytes)
        try:
            yield
        finally:
            for address, array in moved:
                if array.flags.writeable:
                    bytes_at(array.ctypes.data, array.nbytes)[:] = bytes_at(address, array.nbytes)


def bytes_at(address: int, size: int) -> NDArray[np.uint8]:
    """This process's memory as an array, not a copy."""
    memory: Any = _ffi.buffer(_ffi.cast("uint8_t *", address), size)
    return np.frombuffer(memory, np.uint8)


@cache
def _libc() -> Any:
    return _ffi.dlopen(None)


def _pages(blocks: Sequence[tuple[int, NDArray[Any]]]) -> list[tuple[int, int]]:
    """The pages of the blocks, which ascend, as ranges that do not touch."""
    found: list[tuple[int, int]] = []
    for address, array in blocks:
        start, end = address // mmap.PAGESIZE * mmap.PAGESIZE, -(-(address + array.nbytes) // mmap.PAGESIZE) * mmap.PAGESIZE
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((start, end))
    return found


def _map(start: int, size: int) -> None:
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_FIXED_NOREPLACE
    made = _libc().mmap(_ffi.cast("void *", start), size, mmap.PROT_READ | mmap.PROT_WRITE, flags, -1, 0)
    at = int(_ffi.cast("uintptr_t", made))
    if at == start:
        return
    if at != _FAILED:  # a kernel before 4.17 takes the address for a hint
        _libc().munmap(made, size)
    raise MockupError(
        f"{size:,} bytes cannot be placed at {start:#x}",
        "this process has other memory there" if at != _FAILED or _ffi.errno == 17 else f"mmap failed (errno {_ffi.errno})",
        "call the mock-up in a new process; addresses are chosen anew for each",
    )
