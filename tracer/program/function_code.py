"""From a function of a file to a :class:`~layout_advise.tracer.code.region.Region`: its pieces and what it calls, by
decoding."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

import capstone
import numpy as np
from capstone import x86

from layout_advise.tracer.code.region import CodeRange, Region
from layout_advise.tracer.program.symbols import Function

CALLEE_LIMIT = 16
"""At most so many callees of all levels are taken into a region."""

CALLEE_BYTES = 32 * 1024
"""Callees larger than this are not followed: no mock-up takes them in."""

CALLEE_LEVELS = 2


@dataclass(frozen=True, slots=True)
class CodeFile:
    """The questions asked of a file: code by address (of the file, no load base), and the function that holds an address."""

    path: str
    read: Callable[[int, int], bytes]
    function_at: Callable[[int], Function | None]


def region(
    file: CodeFile, function: Function, load_base: int, *, callees: bool = False, pointed: Collection[int] = ()
) -> Region:
    """The function with the pieces that it jumps to (``.cold``, ``.part``), at its run-time addresses.

    With ``callees`` also the functions of the same file that it calls directly and those that they call, the nearest first,
    up to :data:`CALLEE_LIMIT`; none that shares a piece with it, by which it calls itself. Calls through the PLT are not
    followed, those through a pointer only to the functions that begin at ``pointed`` (addresses in the file).
    """
    pieces, called = _code_of(file, function)
    found: dict[int, Region] = {}
    through = {at: other for at in pointed if (other := file.function_at(at)) is not None and other.start == at}
    level = {**called, **through} if callees else {}
    for _ in range(CALLEE_LEVELS):
        below: dict[int, Function] = {}
        for target, other in sorted(level.items()):
            if target == function.start or target in found or other.size > CALLEE_BYTES or len(found) >= CALLEE_LIMIT:
                continue
            parts, inner = _code_of(file, other)
            if any(part in pieces for part in parts):  # the function itself, by another entry
                continue
            found[target] = _region(file, other, parts, load_base)
            below |= inner
        level = below
    return _region(file, function, pieces, load_base, tuple(found.values()))


def _code_of(file: CodeFile, function: Function) -> tuple[list[Function], dict[int, Function]]:
    """The pieces of a function, and by address the functions of the file that they call."""
    pieces = [function]
    called: dict[int, Function] = {}
    for piece in pieces:  # grows while it is walked
        for target, jump in branch_targets(file.read(piece.start, piece.size), piece.start):
            other = file.function_at(target)
            if other is None or other in pieces:
                continue
            if jump and belongs(other, function, target):
                pieces.append(other)
            elif target == other.start:
                called[target] = other
    return pieces, called


def _region(
    file: CodeFile, function: Function, pieces: list[Function], load_base: int, callees: tuple[Region, ...] = ()
) -> Region:
    ranges = tuple(CodeRange(p.start + load_base, file.read(p.start, p.size)) for p in pieces)
    return Region(function.name, "function", function.start + load_base, ranges, file.path, load_base, callees)


def belongs(other: Function, function: Function, target: int) -> bool:
    """Returns whether a jump from ``function`` to ``target`` in ``other`` stays in the same source function.

    Symbols say so (``.cold``, ``.part``). In a stripped file the unwind table gives a cold part no name: there, a jump into
    the middle of a nameless piece tells, since a call or tail call goes to a start.
    """
    if other.clone in ("cold", "part") and other.parent == function.parent:
        return True
    return other.anonymous and target != other.start


def call_sites(code: bytes, start: int, target: int) -> list[int]:
    """The addresses in ``code``, which begins at ``start``, at which ``call rel32`` (e8) leads to ``target``. Four bytes
    that are no instruction do so once in 2^32."""
    at = np.flatnonzero(np.frombuffer(code[:-4], np.uint8) == 0xE8)
    fields = np.frombuffer(code, np.uint8)[at[:, None] + np.arange(1, 5)]
    distances = np.ascontiguousarray(fields).view("<i4").ravel().astype(np.int64)
    return [start + int(site) for site in at[start + at + 5 + distances == target]]


def branch_targets(code: bytes, start: int) -> Iterator[tuple[int, bool]]:
    """Targets of the direct branches out of ``code``: (address, True for a jump, False for a call)."""
    decoder = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
    decoder.detail = True
    decoder.skipdata = True
    for instruction in decoder.disasm(code, start):
        if instruction.id == 0:
            continue
        jump, call = instruction.group(capstone.CS_GRP_JUMP), instruction.group(capstone.CS_GRP_CALL)
        operands = list(instruction.operands) if jump or call else []
        if len(operands) == 1 and operands[0].type == x86.X86_OP_IMM:
            target = operands[0].imm
            if call or not start <= target < start + len(code):
                yield target, not call
