"""Accesses to one element one after the other: where the first one goes is worked out, the others lie so far from it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

from layout_advise.mockup.evidence.binding import Key
from layout_advise.mockup.readdressed.arithmetic import Arithmetic
from layout_advise.mockup.readdressed.registers import ORDER, RegisterUse
from layout_advise.tracer.code.instructions import Instruction
from layout_advise.tracer.code.operands import RAX, RSP, OperandAccess, OperandAddress

MOST_SAVED = 16
"""Registers that may be put aside at a time."""


@dataclass(frozen=True, slots=True)
class MovedStretch:
    """The new address is made before the instruction at ``first``, of its operand ``memory``, in the first of ``registers``,
    which nothing else uses up to ``last``. ``distances`` are those of the accesses' new places from the first one's, by the
    address of the instruction. ``saved`` are put aside meanwhile, each in a slot of this number; ``flags``: these are read
    afterwards."""

    how: Arithmetic
    memory: OperandAddress
    distances: Mapping[int, int]
    registers: tuple[int, ...]
    saved: tuple[tuple[int, int], ...]
    flags: bool

    @property
    def saved_twice(self) -> tuple[tuple[tuple[int, int], ...], tuple[tuple[int, int], ...]]:
        """Those of ``saved`` that are needed while the address is worked out only, and the others."""
        held = self.registers[0]
        return tuple(s for s in self.saved if s[0] != held), tuple(s for s in self.saved if s[0] == held)

    @property
    def first(self) -> int:
        """The address of the first instruction."""
        return next(iter(self.distances))

    @property
    def last(self) -> int:
        """The address of the last one."""
        return next(reversed(self.distances))


def stretches(
    code: Mapping[int, Instruction], moved: Mapping[Key, Arithmetic], known: RegisterUse, flags: Set[int]
) -> list[MovedStretch]:
    """The stretches of all ``moved`` accesses of ``code``; before the instructions ``flags`` the flags may be needed."""
    found: list[MovedStretch] = []
    seen: set[int] = set()
    for block in known.blocks:
        if seen & set(block):  # two functions share it, and it has one copy
            continue
        seen |= set(block)
        insns = [code[address] for address in block if address in code]
        found += _in_block(insns, moved, known, flags)
    alone = {address for address, _ in moved} - {address for one in found for address in one.distances}
    for address in sorted(alone):
        found += _in_block([code[address]], moved, known, flags)
    return found


def _in_block(
    insns: Sequence[Instruction], moved: Mapping[Key, Arithmetic], known: RegisterUse, flags: Set[int]
) -> Iterator[MovedStretch]:
    done: set[int] = set()
    active: list[tuple[int, MovedStretch]] = []
    for at, insn in enumerate(insns):
        access = _moved(insn, moved)
        if access is None or insn.address in done:
            continue
        active = [(end, one) for end, one in active if end >= at]
        busy = {r for _, one in active for r in (one.registers[0],)}
        slots = {slot for _, one in active for _, slot in one.saved}
        stretch = _begun(insns, at, access, moved, known, flags, done, busy, slots)
        done |= set(stretch.distances)
        active.append((max(k for k, i in enumerate(insns) if i.address == stretch.last), stretch))
        yield stretch


def _begun(
    insns: Sequence[Instruction],
    at: int,
    access: OperandAccess,
    moved: Mapping[Key, Arithmetic],
    known: RegisterUse,
    flags: Set[int],
    done: set[int],
    busy: set[int],
    slots: set[int],
) -> MovedStretch:
    """The stretch that begins with the access of instruction number ``at``: as long as a register is left for it."""
    first = insns[at]
    how, live = moved[first.address, access.operand], first.address in flags
    distances, last = {first.address: 0}, at
    used, changed = first.uses, known.changed.get(first.address, frozenset(range(16)))
    for number in range(at + 1, len(insns)):
        insn = insns[number]
        used |= insn.uses
        if not _unused(used, busy):
            break
        other = _moved(insn, moved) if insn.address not in done else None
        if other is not None and not changed & _parts(access.memory):
            apart = _apart(access, how, other, moved[insn.address, other.operand])
            if apart is not None:
                distances[insn.address], last = apart, number
        changed = changed | known.changed.get(insn.address, frozenset(range(16)))
    return _with_registers(
        MovedStretch(how, access.memory, distances, (), (), live), insns[at : last + 1], known, busy, slots
    )


def _with_registers(
    bare: MovedStretch, insns: Sequence[Instruction], known: RegisterUse, busy: set[int], slots: set[int]
) -> MovedStretch:
    used = 0
    for insn in insns:
        used |= insn.uses
    taken = {RSP, *busy, *((RAX,) if bare.flags else ())}
    result = known.result.get(insns[0].address) if len(insns) == 1 else None
    own = [result] if result is not None and result not in taken else []
    throughout = frozenset(range(16)).intersection(*(known.free.get(i.address, frozenset()) for i in insns))
    unused = [r for r in ORDER if r not in taken and not used >> r & 1]
    free = [r for r in unused if r in throughout]
    (chosen, *_) = [*own, *free, *unused]
    needed, more = [chosen], []
    if bare.how.registers > 1:  # while the address is worked out only
        first = insns[0]
        rest = [r for r in ORDER if r not in taken and r != chosen and not first.uses >> r & 1]
        idle = [r for r in rest if r in known.free.get(first.address, frozenset())]
        needed.append((idle or rest)[0])
        more = [] if idle else [needed[1]]
    put = [*([] if chosen in own or chosen in free else [chosen]), *more]
    numbers = [k for k in range(MOST_SAVED) if k not in slots]
    saved = tuple(zip(put, numbers, strict=False))
    return MovedStretch(bare.how, bare.memory, bare.distances, tuple(needed), saved, bare.flags)


def _moved(insn: Instruction, moved: Mapping[Key, Arithmetic]) -> OperandAccess | None:
    return next((a for a in insn.accesses if (insn.address, a.operand) in moved), None)


def _unused(used: int, busy: set[int]) -> bool:
    return any(not used >> r & 1 and r not in busy and r != RAX for r in ORDER)


def _parts(memory: OperandAddress) -> frozenset[int]:
    return frozenset(r for r in (memory.base, memory.index) if r is not None)


def _apart(one: OperandAccess, how: Arithmetic, other: OperandAccess, its: Arithmetic) -> int | None:
    """The distance from the new place of ``one`` to that of ``other``, whose registers are the same; None where they are
    not, or the two are not of one element."""
    a, b = one.memory, other.memory
    alike = (a.base, a.index, a.scale, a.target, a.fs, a.narrow) == (b.base, b.index, b.scale, b.target, b.fs, b.narrow)
    one_way, its_way = ((h.form, h.move.step, h.move.steps, h.move.apart, h.move.bytes) for h in (how, its))
    if (
        not alike
        or how.move.others
        or its.move.others
        or one_way != its_way
        or b.disp - a.disp != its.move.start - how.move.start
    ):
        return None
    return its.move.offset - how.move.offset
