"""Input and result of a watch between calls (:mod:`layout_advise.tracer.watch.user_watch`), as values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from layout_advise.tracer.code.operands import Kind

PARTS = 64
"""The memory of a structure is opened in about so many parts."""
PAGE = 4096


@dataclass(frozen=True, slots=True)
class Pages:
    """Whole pages ``start`` to ``end`` of the structure number ``structure``, with their ``protection`` (PROT_ bits)."""

    start: int
    end: int
    protection: int
    structure: int = 0

    @property
    def part(self) -> int:
        """Bytes that are opened at a time."""
        return -(-(self.end - self.start) // (PARTS * PAGE)) * PAGE


@dataclass(frozen=True, slots=True)
class Course:
    """``call``: the number of the call at which the program stands, at ``entry``. A loop is left through ``exits``; a
    function returns. ``outlined``: only calls that are handed this function count, in the register number ``register``."""

    call: int
    entry: int
    exits: tuple[int, ...] = ()
    outlined: int = 0
    register: int = 7


@dataclass(frozen=True, slots=True)
class OwnCode:
    """The program's own code, without libraries of the system: its pages, and whether a function starts at an address.
    ``gate`` is the address of a syscall instruction outside it."""

    pages: tuple[Pages, ...]
    is_start: Callable[[int], bool]
    gate: int

    def holds(self, address: int) -> bool:
        """Returns whether the instruction at ``address`` is of the program itself."""
        return any(p.start <= address < p.end for p in self.pages)


@dataclass(frozen=True, slots=True)
class WatchedTouch:
    """The instruction at ``pc`` accessed ``bytes`` bytes at ``address`` of structure number ``structure``, after the return
    of call number ``call``. ``caller`` is the return address in the program's own code, where ``pc`` is in a library and
    that was seen. ``system``: the name of the system call made at ``pc`` that did it."""

    structure: int
    pc: int
    kind: Kind
    address: int
    bytes: int
    call: int
    caller: int | None = None
    system: str = ""


@dataclass(frozen=True, slots=True)
class Watched:
    """``touches`` in order, from the return of call ``first`` to the entry of call ``last``, or beyond it to the program's
    end (``ended``). ``gapless``: up to the entry of call ``last`` the memory was inaccessible all the time, so that nothing
    was missed. ``reason``: why the watch ended before its time."""

    first: int
    last: int
    touches: tuple[WatchedTouch, ...]
    ended: bool
    gapless: bool
    reason: str = ""


def whole_pages(start: int, end: int) -> tuple[int, int]:
    """The pages that lie wholly in ``start`` to ``end``; empty where the second is not above the first."""
    return -(-start // PAGE) * PAGE, end // PAGE * PAGE
