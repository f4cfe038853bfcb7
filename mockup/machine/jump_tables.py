"""Jump tables: the targets of the indirect jump of a compiled ``switch``.

Three shapes are known: ``jmp [table + 8 * index]`` and ``mov r, [table + 8 * index]; jmp r`` with absolute entries, and
``movsxd r, [table + 4 * index]; add r, table; jmp r`` with entries relative to the table. The number of entries comes from
the bounds check (``cmp index, N; ja``). Where the compiler left that out (a ``switch`` without any other value, computed
``goto``), the entries are all up to the first that is no instruction of the region: some may be another table's, whose ways
no call takes. Everything else is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, takewhile

from layout_advise.mockup.ir.effects import Const, Expr, Gpr, Read
from layout_advise.mockup.ir.expressions import build
from layout_advise.mockup.machine.disassembly import Immediate, Insn, MemoryOperand, Register
from layout_advise.mockup.machine.image import Image

_MOST = 4096
_UNKNOWN = "indirect jump (no jump table found)"


@dataclass(frozen=True, slots=True)
class TargetCode:
    """What the targets of a table have to be: ``inside`` the region, and at the ``start`` of an instruction of it."""

    inside: Callable[[int], bool]
    start: Callable[[int], bool]


def jump_targets(
    insn: Insn,
    before: Sequence[Insn],
    image: Image,
    code: TargetCode,
    known: Iterable[Insn] = (),
) -> tuple[tuple[int, ...], Expr | None, Expr | None]:
    """``(targets, value, load)`` of :class:`layout_advise.mockup.machine.cfg.IndirectJump` for the jump ``insn``.

    ``before`` are the instructions that lead to it, nearest first, ``known`` all that were found so far: clang loads the
    table's address before the loop around a ``switch``. Raises NotLiftedError where the table is not plain.
    """
    known = tuple(known)
    target = insn.operands[0]
    if isinstance(target, MemoryOperand):
        if target.index is None or target.scale != 8 or target.segment or target.narrow:
            raise insn.refuse(_UNKNOWN)
        table = _constant(target.base, before, known) if target.base else 0
        if table is None:
            raise insn.refuse(_UNKNOWN)
        start = (table + target.displacement) % 2**64
        entries = _targets(insn, image, start, 8, _count(target.index, before), code)
        return entries, None, _address(target)
    if not (isinstance(target, Register) and target.kind == "gpr" and target.bytes == 8):
        raise insn.refuse(_UNKNOWN)
    value = Read(Gpr(target.number), "i64")
    loaded = _absolute(target.number, before, known)
    if loaded is not None:
        start, index, skip = loaded
        return _targets(insn, image, start, 8, _count(index, before[skip:]), code), value, None
    start, index, skip = _relative(insn, target.number, before, known)
    return _targets(insn, image, start, 4, _count(index, before[skip:]), code), value, None


def _address(memory: MemoryOperand) -> Expr:
    assert memory.index is not None
    total = build("mul", "i64", Read(memory.index, "i64"), Const("i64", memory.scale))
    if memory.base is not None:
        total = build("add", "i64", Read(memory.base, "i64"), total)
    return build("add", "i64", total, Const("i64", memory.displacement))


def _writes(insn: Insn, register: int) -> bool:
    first = insn.operands[0] if insn.operands else None
    return (
        isinstance(first, Register)
        and first.kind == "gpr"
        and first.number == register
        and insn.mnemonic not in ("cmp", "test", "push")
    )


def _constant(register: Gpr, before: Sequence[Insn], known: Sequence[Insn]) -> int | None:
    """The constant that a ``lea r, [rip + x]`` or ``mov r, imm`` among ``before`` put into the register; where none of these
    writes it, the only address that one of ``known`` puts there."""
    for insn in before:
        if _writes(insn, register.number):
            return _loaded(insn)
    found = {_loaded(insn) for insn in known if insn.mnemonic == "lea" and _writes(insn, register.number)} - {None}
    return found.pop() if len(found) == 1 else None


def _loaded(insn: Insn) -> int | None:
    second = insn.operands[1] if len(insn.operands) > 1 else None
    if insn.mnemonic == "lea" and isinstance(second, MemoryOperand) and second.base is None and second.index is None:
        return second.displacement
    if insn.mnemonic in ("mov", "movabs") and isinstance(second, Immediate):
        return second.value % 2**64
    return None


def _absolute(register: int, before: Sequence[Insn], known: Sequence[Insn]) -> tuple[int, Gpr, int] | None:
    """Start of the table, its index register, and how many of ``before`` were used, where the target is an entry of it."""
    for skip, step in enumerate(before):
        if not _writes(step, register):
            continue
        source = step.operands[1] if len(step.operands) > 1 else None
        plain = step.mnemonic == "mov" and isinstance(source, MemoryOperand) and source.scale == 8 and not source.segment
        if not plain or not isinstance(source, MemoryOperand) or source.index is None or source.narrow:
            return None
        table = _constant(source.base, before[skip + 1 :], known) if source.base else 0
        return ((table + source.displacement) % 2**64, source.index, skip + 1) if table is not None else None
    return None


def _relative(insn: Insn, register: int, before: Sequence[Insn], known: Sequence[Insn]) -> tuple[int, Gpr, int]:
    """Start of the table, its index register, and how many of ``before`` were used, for the relative shape."""
    other: int | None = None
    for skip, step in enumerate(before):
        if not _writes(step, register) and not (other is not None and _writes(step, other)):
            continue
        source = step.operands[1] if len(step.operands) > 1 else None
        if step.mnemonic == "add" and isinstance(source, Register) and other is None:
            other = source.number
            continue
        if (
            step.mnemonic == "movsxd"
            and isinstance(source, MemoryOperand)
            and source.scale == 4
            and source.base
            and source.index
        ):
            table = _constant(source.base, before[skip + 1 :], known)
            loaded = step.operands[0]
            sums = other is not None and isinstance(loaded, Register) and {loaded.number, other} >= {register}
            if table is not None and source.displacement == 0 and sums and not source.segment:
                return table, source.index, skip + 1
        break
    raise insn.refuse(_UNKNOWN)


def _count(index: Gpr, before: Sequence[Insn]) -> int | None:
    """Number of entries, from the ``cmp index, N`` that a ``ja``/``jbe`` tests; the index must not change in between. The
    bound may be that of the memory which the index is then loaded from. None: there is no bound."""
    number = index.number
    bounded = False
    for place, step in enumerate(before):
        if step.mnemonic in ("ja", "jbe", "jnbe", "jna"):
            bounded = True
        if bounded and step.mnemonic == "cmp" and isinstance(step.operands[1], Immediate):
            first = step.operands[0]
            if isinstance(first, Register) and first.kind == "gpr" and first.number == number:
                return step.operands[1].value + 1
        if _writes(step, number):
            source = step.operands[1] if len(step.operands) > 1 else None
            moved = step.mnemonic in ("mov", "movzx", "movsxd") and isinstance(source, Register) and source.kind == "gpr"
            if not moved:
                if step.mnemonic == "and" and isinstance(source, Immediate) and 0 <= source.value < _MOST:
                    return source.value + 1
                extended = step.mnemonic == "movzx" or (
                    step.mnemonic == "mov" and isinstance(source, MemoryOperand) and source.bytes >= 4
                )
                if extended and isinstance(source, MemoryOperand):
                    count = _memory_bound(source, before[place + 1 :])
                    if count is not None:
                        return count
                break
            assert isinstance(source, Register)
            number = source.number
    return None


def _memory_bound(source: MemoryOperand, before: Sequence[Insn]) -> int | None:
    """Number of entries where ``cmp source, N`` and ``ja`` come before the index is loaded from there, and nothing in
    between changes the registers of the address or is a call. (A store in between is to another place: the compiler that
    checks memory and loads it anew knows that it is.)"""
    bounded = False
    for step in before:
        if step.mnemonic in ("ja", "jbe", "jnbe", "jna"):
            bounded = True
        if bounded and step.mnemonic == "cmp" and step.operands[0] == source and isinstance(step.operands[1], Immediate):
            return step.operands[1].value + 1
        registers = [r for r in (source.base, source.index) if r is not None]
        if step.mnemonic == "call" or any(_writes(step, register.number) for register in registers):
            return None
    return None


def _targets(insn: Insn, image: Image, start: int, size: int, count: int | None, code: TargetCode) -> tuple[int, ...]:
    """The targets of a table (distinct, ascending) with ``count`` entries of ``size`` bytes: absolute ones of 8, of 4 those
    relative to its ``start``. Without a count, of as many as there are."""
    if count is None:
        found = tuple(takewhile(code.start, (t for t in _all(image, start, size) if t is not None)))
        if not found:
            raise insn.refuse("jump table without a bounds check")
        return tuple(sorted(set(found)))
    within = 0 < count <= _MOST
    entries: list[int | None] = list(islice(_all(image, start, size), count)) if within else [None]
    known = [entry for entry in entries if entry is not None]
    if count & count - 1 == 0 and not (len(known) == len(entries) and all(map(code.inside, known))):
        # a mask (``and index, 127``) bounds what is read, which an interpreter with 83 instructions never goes beyond
        known = list(takewhile(code.start, known))
        entries = list[int | None](known)
    if len(known) < len(entries) or not known:
        raise insn.refuse("jump table that is not in read-only memory")
    if not all(map(code.inside, known)):
        raise insn.refuse("jump table that leaves the region")
    return tuple(sorted(set(known)))


def _all(image: Image, start: int, size: int) -> Iterator[int | None]:
    """Entry for entry, at most :data:`_MOST`; None at the first that is not known, which is the last."""
    for at in range(start, start + size * _MOST, size):
        if size == 8:
            entry = image.pointer(at)
        else:
            data = image.read(at, 4)
            entry = None if data is None else (start + int.from_bytes(data, "little", signed=True)) % 2**64
        yield entry
        if entry is None:
            return
