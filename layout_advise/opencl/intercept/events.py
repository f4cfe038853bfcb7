"""The accesses to buffers in a host program, in their order, as the recorder wrote them in the file ``order``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

What = Literal["new", "read", "changed", "overwritten", "launch"]
_HOST: dict[str, What] = {"n": "new", "r": "read", "c": "changed", "w": "overwritten"}


@dataclass(frozen=True, slots=True)
class BufferEvent:
    """The host makes a buffer without content, reads, changes or overwrites it; or a launch of kernel number ``kernel`` on
    some buffers, each named once, in the order of the kernel's arguments."""

    what: What
    buffers: tuple[int, ...]
    kernel: int = -1


def read_events(file: Path) -> tuple[BufferEvent, ...] | None:
    """The events; None where there were too many, or some that are not understood."""
    try:
        lines = file.read_text().splitlines()
    except OSError:
        return None
    found = list(_events(lines))
    return None if None in found else tuple(one for one in found if one is not None)


def _events(lines: Iterable[str]) -> Iterator[BufferEvent | None]:
    for word, *rest in filter(None, map(str.split, lines)):
        numbers = tuple(map(int, rest))
        if word == "k":
            yield BufferEvent("launch", tuple(dict.fromkeys(numbers[1:])), numbers[0])
        else:
            yield BufferEvent(_HOST[word], numbers) if word in _HOST else None
