"""Finds the parts of a process that lie in huge pages, and puts a restored copy back into them.

A restore loses the huge pages, and a gather over small pages then runs up to 1.35 times slower than in the program;
collapsing where there were none makes it faster than the truth. So exactly the ranges that were huge are collapsed again.
"""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Iterator
from pathlib import Path

from layout_advise.tracer.process.stopped_program import Range
from layout_advise.tracer.snapshot.pages.touched import scan

HUGE = 2 << 20

_PAGE_IS_HUGE = 1 << 6
_PROCESS_MADVISE = 440
_MADV_COLLAPSE = 25  # Linux 6.1


def huge_ranges(pid: int) -> tuple[Range, ...]:
    """The ranges of process ``pid`` that are mapped by anonymous huge pages, ascending; 2 MiB multiples."""
    found: list[Range] = []
    for mapping, huge_bytes in _mappings_with_huge_pages(pid):
        try:
            found.extend(_scan(pid, mapping))
        except OSError:  # before Linux 6.7: a mapping that is huge throughout is known, of others the front is assumed
            start = -(-mapping.start // HUGE) * HUGE
            found.append(Range(start, start + huge_bytes))
    return tuple(found)


def huge_bytes(pid: int) -> int:
    """How much of process ``pid`` lies in anonymous huge pages, in bytes."""
    return sum(size for _, size in _mappings_with_huge_pages(pid))


def collapse(pid: int, ranges: tuple[Range, ...]) -> int:
    """Put ``ranges`` of process ``pid`` into huge pages, from outside; returns how many bytes the kernel refused.

    It refuses where it finds no free 2 MiB of memory, or without ``CAP_SYS_NICE``.
    """
    if not ranges:
        return 0
    libc = ctypes.CDLL(None, use_errno=True)
    refused = 0
    descriptor = os.pidfd_open(pid)
    try:
        for piece in ranges:
            # In one call the first refusal would end it: window by window.
            for start in range(piece.start, piece.end, HUGE):
                vector = struct.pack("QQ", start, HUGE)
                done = libc.syscall(
                    ctypes.c_long(_PROCESS_MADVISE),
                    ctypes.c_long(descriptor),
                    ctypes.c_char_p(vector),
                    ctypes.c_size_t(1),
                    ctypes.c_long(_MADV_COLLAPSE),
                    ctypes.c_long(0),
                )
                refused += HUGE if done < 0 else 0
    finally:
        os.close(descriptor)
    return refused


def _mappings_with_huge_pages(pid: int) -> Iterator[tuple[Range, int]]:
    mapping = Range(0, 0)
    for line in Path(f"/proc/{pid}/smaps").read_text(errors="replace").splitlines():
        first, _, rest = line.partition(" ")
        if first == "AnonHugePages:":
            size = int(rest.split()[0]) * 1024
            if size:
                yield mapping, size
        elif not first.endswith(":"):
            start, _, end = first.partition("-")
            mapping = Range(int(start, 16), int(end, 16))


def _scan(pid: int, mapping: Range) -> list[Range]:
    """The huge parts of one mapping, by the kernel's own account of its page tables."""
    with open(f"/proc/{pid}/pagemap", "rb", buffering=0) as pagemap:
        return [Range(first, last) for first, last in scan(pagemap.fileno(), mapping.start, mapping.end, _PAGE_IS_HUGE)]
