"""What a process has touched of its addresses, by both ways of asking the kernel."""

from __future__ import annotations

import fcntl
import mmap
import os
from collections.abc import Iterator

import numpy as np
import pytest

from layout_advise.tracer.snapshot.pages import touched as module
from layout_advise.tracer.snapshot.pages.touched import PAGE, touched, united

WAYS = ("scanned", "read")


@pytest.fixture(params=WAYS)
def pagemap(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """This process's page table; in the second way the kernel does not know the request."""
    if request.param == "read":

        def refuse(*_: object) -> int:
            raise OSError(25, "Inappropriate ioctl for device")

        monkeypatch.setattr(fcntl, "ioctl", refuse)
    handle = os.open("/proc/self/pagemap", os.O_RDONLY)
    yield handle
    os.close(handle)


def reserved(size: int) -> tuple[mmap.mmap, int]:
    """Memory that nothing has touched yet, without huge pages, and its address."""
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory.madvise(mmap.MADV_NOHUGEPAGE)
    return memory, np.frombuffer(memory, dtype=np.uint8).ctypes.data


def test_only_touched_pages_are_told(pagemap: int) -> None:
    memory, at = reserved(200 << 20)
    pages = (0, 1, 5, 20_000, 20_001, 20_002, (200 << 20) // PAGE - 1)
    for page in pages:
        memory[page * PAGE] = 1
    found = touched(pagemap, at, at + (200 << 20))
    assert [((low - at) // PAGE, (high - at) // PAGE) for low, high in found] == [
        (0, 2),
        (5, 6),
        (20_000, 20_003),
        (pages[-1], pages[-1] + 1),
    ]


def test_it_is_cut_to_the_range(pagemap: int) -> None:
    memory, at = reserved(1 << 20)
    memory[: 3 * PAGE] = b"1" * (3 * PAGE)
    assert touched(pagemap, at + 7, at + 2 * PAGE + 9) == [(at + 7, at + 2 * PAGE + 9)]
    assert touched(pagemap, at + 4 * PAGE + 1, at + 4 * PAGE + 2) == []


def test_more_regions_than_one_request_tells_of(pagemap: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_REGIONS", 4)
    memory, at = reserved(4 << 20)
    for page in range(0, 40, 2):
        memory[page * PAGE] = 1
    assert len(touched(pagemap, at, at + (4 << 20))) == 20


def test_ranges_are_united() -> None:
    assert united([(8, 12), (0, 4), (4, 6), (9, 10), (20, 21)]) == [(0, 6), (8, 12), (20, 21)]
