"""The memory that a system call reads or writes for the program, as far as its arguments tell."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

IOV_MAX = 1024
EFAULT = -14


@dataclass(frozen=True, slots=True)
class CallBuffer:
    """``bytes`` bytes at ``address``; ``kind`` is what the call does to them."""

    address: int
    bytes: int
    kind: Literal["read", "write"]


_PLAIN: dict[int, tuple[str, Literal["read", "write"]]] = {
    0: ("read", "write"),
    1: ("write", "read"),
    17: ("pread64", "write"),
    18: ("pwrite64", "read"),
    44: ("sendto", "read"),
    45: ("recvfrom", "write"),
}
"""Number: name, and what becomes of the buffer of the second and third argument."""

_VECTORS: dict[int, tuple[str, Literal["read", "write"]]] = {
    19: ("readv", "write"),
    20: ("writev", "read"),
    295: ("preadv", "write"),
    296: ("pwritev", "read"),
    327: ("preadv2", "write"),
    328: ("pwritev2", "read"),
}
_MESSAGES: dict[int, tuple[str, Literal["read", "write"]]] = {46: ("sendmsg", "read"), 47: ("recvmsg", "write")}


_MMAP, _MPROTECT, _MUNMAP, _BRK, _MREMAP, _REMAP_PAGES = 9, 10, 11, 12, 25, 216
_MAP_FIXED, _MREMAP_FIXED = 0x10, 2


def remapped(number: int, arguments: tuple[int, ...], heap_end: Callable[[], int]) -> tuple[tuple[int, int], ...]:
    """The ranges (start, end) whose mapping system call ``number`` takes away, replaces or changes; ``heap_end`` tells where
    the memory that brk gives ends now."""
    first, second, third, fourth, fifth, *_ = arguments
    if number in (_MUNMAP, _MPROTECT, _REMAP_PAGES) or (number == _MMAP and fourth & _MAP_FIXED):
        return ((first, first + second),)
    if number == _MREMAP:
        return ((first, first + second), *([(fifth, fifth + third)] if fourth & _MREMAP_FIXED else []))
    if number == _BRK and first:
        return ((first, heap_end()),)
    return ()


def call_name(number: int) -> str:
    """``write`` for 1; the number of those that are not known here."""
    for table in (_PLAIN, _VECTORS, _MESSAGES):
        if number in table:
            return table[number][0]
    return f"system call {number}"


def buffers(number: int, arguments: tuple[int, ...], read: Callable[[int, int], bytes]) -> tuple[CallBuffer, ...]:
    """The buffers of system call ``number``; ``()`` for calls that are not known here. ``read`` reads the program's memory;
    a pointer that leads nowhere gives ``()`` too."""
    if number in _PLAIN:
        return (CallBuffer(arguments[1], arguments[2], _PLAIN[number][1]),)
    try:
        if number in _VECTORS:
            return _vector(arguments[1], arguments[2], _VECTORS[number][1], read)
        if number in _MESSAGES:
            head = read(arguments[1], 56)
            return _vector(_word(head, 2), _word(head, 3), _MESSAGES[number][1], read)
    except OSError:
        return ()
    return ()


def _word(data: bytes, index: int) -> int:
    return int.from_bytes(data[8 * index : 8 * index + 8], "little")


def _vector(
    address: int, count: int, kind: Literal["read", "write"], read: Callable[[int, int], bytes]
) -> tuple[CallBuffer, ...]:
    """The entries of a ``struct iovec`` array."""
    if not 0 < count <= IOV_MAX:
        return ()
    data = read(address, 16 * count)
    return tuple(CallBuffer(_word(data, 2 * k), _word(data, 2 * k + 1), kind) for k in range(len(data) // 16))
