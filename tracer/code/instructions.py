"""A region's bytes as instructions: recursive descent from the entries, then a linear sweep over what that left.

The sweep finds the targets of jump tables and the padding between blocks. Bytes that it cannot decode are data and stay
untranslated; bytes that control reaches and that do not decode are an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from layout_advise.errors import RefusedError
from layout_advise.tracer.code.decoder import disassemble
from layout_advise.tracer.code.flow import (
    Flow,
    flow_of,
    kills_flags,
    reads_flags,
    relative_displacement,
    repeat_prefix,
    stands_alone,
    used_registers,
)
from layout_advise.tracer.code.operands import (
    MaskedElements,
    OperandAccess,
    UnsupportedOperand,
    accesses_of,
    bare,
    lanes_of,
)
from layout_advise.tracer.code.region import CodeRange, Region
from layout_advise.tracer.trace.trace import Reference

_BATCH = 16


@dataclass(frozen=True, slots=True)
class Instruction:
    """One decoded instruction at its original address.

    ``target`` is the destination of a direct jump or call; ``uses`` the general registers it reads or writes (bit n for
    register n); ``relative_at`` the offset of a rip-relative displacement in ``code`` (-1: none) that means ``relative_to``.
    ``repeat`` is the prefix byte of a repeated string instruction, else 0. ``register`` is the one an indirect jump or call
    goes through, where it is not a memory operand.
    """

    address: int
    code: bytes
    name: str
    flow: Flow
    target: int | None
    accesses: tuple[OperandAccess, ...]
    uses: int
    relative_at: int
    relative_to: int
    reads_flags: bool
    kills_flags: bool
    repeat: int = 0
    lanes: MaskedElements | None = None
    register: int | None = None
    alone: bool = False
    """It must not stand among others between the head and the tail of a recording segment."""

    @property
    def end(self) -> int:
        """Address after the instruction."""
        return self.address + len(self.code)

    @property
    def falls_through(self) -> bool:
        """Returns whether the next instruction in memory may run next."""
        return self.flow not in ("jump", "jump-indirect", "return", "stop")


def functions_of(region: Region) -> tuple[Region, ...]:
    """``region`` and all callees below it, each once (by entry)."""
    found: dict[int, Region] = {}
    todo = [region]
    while todo:
        function = todo.pop()
        if function.entry not in found:
            found[function.entry] = function
            todo.extend(function.callees)
    return tuple(found.values())


def decode(region: Region) -> dict[int, Instruction]:
    """Every instruction of ``region`` and its callees by address, ascending.

    Raises :class:`RefusedError` where code that is reached does not decode, overlaps itself, or cannot be instrumented.
    """
    functions = functions_of(region)
    ranges = sorted({(r.start, r.code) for function in functions for r in function.ranges})
    code = _Code([CodeRange(start, text) for start, text in ranges])
    code.descend(entry for function in functions for entry in (function.entry, *(r.start for r in function.ranges)))
    code.sweep()
    return dict(sorted(code.found.items()))


def references_of(code: Mapping[int, Instruction]) -> tuple[Reference, ...]:
    """All memory operands of ``code`` (ascending), numbered."""
    return tuple(
        Reference(number, insn.address, access.operand, access.kind, access.bytes)
        for number, (insn, access) in enumerate((i, a) for i in code.values() for a in i.accesses)
    )


class _Code:
    """Decoding in progress."""

    def __init__(self, ranges: list[CodeRange]) -> None:
        self.ranges = ranges
        self.found: dict[int, Instruction] = {}

    def range_at(self, address: int) -> CodeRange | None:
        return next((r for r in self.ranges if r.start <= address < r.end), None)

    def run(self, address: int) -> Iterable[Instruction]:
        place = self.range_at(address)
        if place is None:
            return
        # a few at a time: capstone decodes all that it is given before it hands out the first
        at = address
        while at < place.end:
            before = at
            for insn in disassemble(place.code[at - place.start :], at, _BATCH):
                yield instruction(insn)
                at = insn.address + insn.size
            if at == before:
                return

    def descend(self, entries: Iterable[int]) -> None:
        todo = list(entries)
        while todo:
            address = todo.pop()
            if address in self.found or self.range_at(address) is None:
                continue
            reached = address
            for insn in self.run(address):
                if insn.address in self.found:
                    reached = -1
                    break
                self.found[insn.address] = insn
                reached = insn.end
                if insn.target is not None:
                    todo.append(insn.target)
                if not insn.falls_through:
                    reached = -1
                    break
            place = self.range_at(reached)
            # a call that never returns may be followed by anything, so only what a jump leads to must decode
            if reached == address and place is not None:
                raw = place.code[reached - place.start :][:15].hex(" ")
                raise RefusedError(f"no clone of the code at {reached:#x}", f"capstone does not decode {raw}")
        end = 0
        for insn in (self.found[a] for a in sorted(self.found)):
            if insn.address < end:
                raise RefusedError(f"no clone of the code at {insn.address:#x}", "its instructions overlap")
            end = insn.end

    def sweep(self) -> None:
        for place in self.ranges:
            known = [a for a in sorted(self.found) if place.start <= a < place.end]
            at = place.start
            for limit in (*known, place.end):
                if at < limit:
                    self.fill(at, limit)
                if limit < place.end:
                    at = self.found[limit].end

    def fill(self, at: int, limit: int) -> None:
        try:
            for insn in self.run(at):
                if insn.end > limit:
                    return
                self.found[insn.address] = insn
                if insn.end == limit:
                    return
        except RefusedError:
            return  # unreached bytes that happen to look like an unsupported instruction


def instruction(insn: Any) -> Instruction:
    """A capstone instruction (with detail) as the clone needs it. Raises :class:`RefusedError`."""
    name = bare(insn.mnemonic)
    try:
        accesses = accesses_of(insn)
        lanes = lanes_of(insn)
        repeat = repeat_prefix(insn)
    except UnsupportedOperand as reason:
        raise RefusedError(
            f"no clone of `{insn.mnemonic} {insn.op_str}` at {insn.address:#x}", str(reason), "use --backend valgrind"
        ) from None
    flow, target, register = flow_of(insn, name)
    relative_at, relative_to = relative_displacement(insn)
    return Instruction(
        address=insn.address,
        code=bytes(insn.bytes),
        name=name,
        flow=flow,
        target=target,
        accesses=accesses,
        uses=used_registers(insn, name),
        relative_at=relative_at,
        relative_to=relative_to,
        reads_flags=reads_flags(name),
        kills_flags=kills_flags(name),
        repeat=repeat,
        lanes=lanes,
        register=register,
        alone=stands_alone(name) or bool(repeat) or lanes is not None,
    )


def leaders(code: Mapping[int, Instruction], entries: Iterable[int]) -> set[int]:
    """Addresses that are jumped to directly, entries, and what follows a jump."""
    found = set(entries)
    for insn in code.values():
        if insn.flow != "next":
            found.add(insn.end)
        if insn.target is not None:
            found.add(insn.target)
    return found & code.keys()
