"""The watched memory of a program under ptrace: inaccessible (mprotect) but for what is opened for a short time."""

from __future__ import annotations

import signal
import time
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import replace

from layout_advise.tracer.process.ptrace import UserRegisters
from layout_advise.tracer.process.seized import Seized
from layout_advise.tracer.watch.watched import PAGE, Pages

FLIPS = 512
"""Parts opened after one call, above which all are opened at a time."""
SLICE = 5e-4
"""Seconds that a part stays open at first."""
LONGEST_SLICE = 0.02
_MPROTECT = 10
_SPANNED = 4
"""Pages that one instruction touches at most."""


class WatchOver(Exception):
    """The watch ends; the text says why, if it is not the program's end."""


def apart(memory: Sequence[Pages]) -> list[Pages]:
    """``memory`` ascending by address, each page once: of pages in several structures, as those of the first."""
    found: list[Pages] = []
    for pages in sorted(memory, key=lambda p: p.start):
        start = max(pages.start, found[-1].end) if found else pages.start
        if start < pages.end:
            found.append(replace(pages, start=start))
    return found


class GuardedMemory:
    """The pages ``memory``; ``gate`` is the address of a syscall instruction by which they are protected.

    ``open`` is the part that is open until ``slice_end`` (0: that time is over), ``everything`` whether all of it is
    accessible. ``missed``: accesses may have gone unseen.
    """

    def __init__(self, process: Seized, gate: int, memory: Sequence[Pages]) -> None:
        self._process, self._gate = process, gate
        self.pages = apart(memory)
        self._starts = [p.start for p in self.pages]
        self.open: Pages | None = None
        self.everything = False
        self.missed = False
        self.slice_end = 0.0
        self._slice, self._flips = SLICE, 0

    @property
    def expired(self) -> bool:
        """Returns whether something is open whose time is over."""
        return self.open is not None and not self.slice_end

    def find(self, address: int) -> Pages | None:
        """The watched pages that hold ``address``."""
        index = bisect_right(self._starts, address) - 1
        return self.pages[index] if index >= 0 and address < self.pages[index].end else None

    def overlaps(self, start: int, end: int) -> bool:
        """Returns whether a watched page lies in ``start`` to ``end``."""
        return any(p.start < end and start < p.end for p in self.pages)

    def keeping_registers(self, thread: int, act: Callable[[int], None]) -> None:
        """``act`` makes system calls in the thread's name."""
        registers = self._process.registers_of(thread)
        act(thread)
        self._process.set_registers_of(thread, registers)

    def protect(self, thread: int, pages: Pages, protection: int) -> None:
        """Changes the protection of ``pages`` by a system call of the stopped thread, whose registers change."""
        size = pages.end - pages.start
        if self._process.system_call(thread, self._gate, _MPROTECT, pages.start, size, protection):
            raise WatchOver("its memory was given back to the system between the calls")

    def open_all(self, thread: int) -> None:
        """Makes all of it accessible."""
        self._protect_all(thread, True)

    def close_all(self, thread: int) -> None:
        """Makes all of it inaccessible."""
        self._protect_all(thread, False)

    def close(self, thread: int) -> None:
        """Makes what is open inaccessible again."""
        if self.everything:
            self.close_all(thread)
        elif self.open is not None:
            self.protect(thread, self.open, 0)
        self.open, self.slice_end = None, 0.0

    def after_call(self) -> None:
        """The hotspot has returned: parts are opened one by one again."""
        self._flips = 0

    def step(self, thread: int, registers: UserRegisters, address: int) -> None:
        """Executes one instruction, which faulted at ``address``, with what it touches open."""
        opened: list[Pages] = []
        while len(opened) < _SPANNED and (pages := self.find(address)) is not None:
            page = Pages(address // PAGE * PAGE, address // PAGE * PAGE + PAGE, pages.protection)
            if page in opened:
                break
            self.protect(thread, page, page.protection)
            opened.append(page)
            self._process.set_registers_of(thread, registers)
            stop = self._process.step(thread)
            if stop.ended or stop.signal != signal.SIGSEGV:
                break
            address = self._process.fault_address(thread)
        after = self._process.registers_of(thread)
        for page in opened:
            self.protect(thread, page, 0)
        self._process.set_registers_of(thread, after)

    def open_part(self, thread: int, pages: Pages, address: int) -> None:
        """Opens the part around ``address``, or all of it where parts would be opened too often; for a short time."""
        self.missed = True
        self._flips += 1
        if self._flips > FLIPS:
            self.open_all(thread)
            self._slice = min(2 * self._slice, LONGEST_SLICE)
            self.open = self.pages[0]
        else:
            start = pages.start + (address - pages.start) // pages.part * pages.part
            part = Pages(start, min(start + pages.part, pages.end), pages.protection)
            self.protect(thread, part, part.protection)
            self.open = part
        self.slice_end = time.monotonic() + self._slice

    def _protect_all(self, thread: int, accessible: bool) -> None:
        for pages in self.pages:
            self.protect(thread, pages, pages.protection if accessible else 0)
        self.open, self.slice_end, self.everything = None, 0.0, accessible
