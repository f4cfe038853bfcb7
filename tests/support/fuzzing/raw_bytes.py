"""Damage to bytes of which nothing is known."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

ODD_NUMBERS = (
    0,
    1,
    -1,
    0x7F,
    0x80,
    0xFF,
    0x7FFF,
    0xFFFF,
    0x7FFFFFFF,
    0x80000000,
    0xFFFFFFFF,
    1 << 40,
    (1 << 63) - 1,
    1 << 63,
)


def flipped(random: Random, data: bytes) -> bytes:
    """One bit is another one."""
    at = random.randrange(len(data))
    return data[:at] + bytes([data[at] ^ 1 << random.randrange(8)]) + data[at + 1 :]


def cut(random: Random, data: bytes) -> bytes:
    """The end is missing."""
    return data[: random.randrange(len(data))]


def without(random: Random, data: bytes) -> bytes:
    """A piece is missing."""
    begin = random.randrange(len(data))
    return data[:begin] + data[begin + random.randrange(1, 64) :]


def twice(random: Random, data: bytes) -> bytes:
    """A piece is there twice."""
    begin = random.randrange(len(data))
    end = begin + random.randrange(1, 256)
    return data[:end] + data[begin:end] + data[end:]


def moved(random: Random, data: bytes) -> bytes:
    """A piece lies over another one."""
    length = random.randrange(1, 64)
    source, target = random.randrange(len(data)), random.randrange(len(data))
    piece = data[source : source + length][: len(data) - target]
    return data[:target] + piece + data[target + len(piece) :]


def numbered(random: Random, data: bytes) -> bytes:
    """A number of one to eight bytes is an odd one."""
    size = random.choice((1, 2, 4, 8))
    if len(data) < size:
        return data + b"\xff"
    value = random.choice(ODD_NUMBERS) & (1 << 8 * size) - 1
    at = random.randrange(len(data) - size + 1)
    return data[:at] + value.to_bytes(size, "little") + data[at + size :]


def filled(random: Random, data: bytes) -> bytes:
    """A piece is all zeros, or all ones."""
    begin = random.randrange(len(data))
    length = min(random.randrange(1, 128), len(data) - begin)
    return data[:begin] + random.choice((b"\0", b"\xff")) * length + data[begin + length :]


WAYS: tuple[Callable[[Random, bytes], bytes], ...] = (flipped, cut, without, twice, moved, numbered, filled)


def damaged(random: Random, data: bytes, most: int = 4) -> bytes:
    """``data`` with one to ``most`` faults."""
    for _ in range(random.randint(1, most)):
        data = random.choice(WAYS)(random, data) if data else b"\0"
    return data
