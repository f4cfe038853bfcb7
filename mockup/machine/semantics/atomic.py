"""Operations that are one step to all threads: with the prefix ``lock``, and exchanges with memory."""

from __future__ import annotations

from layout_advise.mockup.ir.effects import AtomicEffect, Const, Expr, Gpr, Semantics, Temp, Ty
from layout_advise.mockup.ir.expressions import build
from layout_advise.mockup.machine.disassembly import MemoryOperand, Operand, Register
from layout_advise.mockup.machine.semantics.context import Context
from layout_advise.mockup.machine.semantics.elements import INTEGER

ATOMIC = frozenset(["add", "sub", "and", "or", "xor", "inc", "dec", "xadd", "xchg", "cmpxchg"])
"""What is lifted, by mnemonic. ``lock not``, ``neg``, ``adc``, ``bts`` and pairs of words are not."""

_RAX = 0


def atomic(c: Context) -> Semantics:
    """The effects of an atomic instruction: that on its operand in memory is one of its own."""
    memory, other = _operands(c)
    ty = INTEGER[memory.bytes]
    match c.name:
        case "inc" | "dec":
            operation = "add" if c.name == "inc" else "sub"
            old = _effect(c, ty, operation, memory, Const(ty, 1))
            c.step_flags(c.name, build(operation, ty, old, Const(ty, 1)))
        case "xadd":
            value = c.integer(_register(c, other))
            old = _effect(c, ty, "add", memory, value)
            c.set_flags("add", old, value)
            c.set_integer(_register(c, other), old)
        case "xchg":
            c.set_integer(_register(c, other), _effect(c, ty, "xchg", memory, c.integer(_register(c, other))))
        case "cmpxchg":
            expected = c.gpr(_RAX, memory.bytes)
            old = _effect(c, ty, "cas", memory, expected, c.integer(_register(c, other)))
            c.set_flags("sub", expected, old)
            _keep_or_set(c, ty, expected, old)
        case "add" | "sub":
            assert other is not None
            value = c.integer(other, memory.bytes)
            old = _effect(c, ty, c.name, memory, value)
            c.set_flags(c.name, old, value)
        case _:
            assert other is not None
            value = c.integer(other, memory.bytes)
            old = _effect(c, ty, c.name, memory, value)
            c.set_flags("logic", build(c.name, ty, old, value))
    return c.finish()


def _operands(c: Context) -> tuple[MemoryOperand, Operand | None]:
    memory = [op for op in c.ops if isinstance(op, MemoryOperand)]
    others = [op for op in c.ops if not isinstance(op, MemoryOperand)]
    if len(memory) != 1 or memory[0].bytes not in INTEGER:
        raise c.refuse("atomic operation (lock)")
    return memory[0], others[0] if others else None


def _register(c: Context, operand: Operand | None) -> Register:
    if isinstance(operand, Register) and operand.kind == "gpr":
        return operand
    raise c.refuse("operand form that is not lifted")


def _effect(c: Context, ty: Ty, operation: str, memory: MemoryOperand, *args: Expr) -> Temp:
    assert not c.loads
    c.atomics.append(AtomicEffect(0, ty, operation, c.address(memory), args))
    return Temp(0, ty)


def _keep_or_set(c: Context, ty: Ty, expected: Expr, old: Expr) -> None:
    """The accumulator gets what stood there where that is not what was expected; of 32 bits the upper half is then cleared,
    else it stays."""
    if ty == "i64":
        c.set_gpr(_RAX, old)  # where they are equal, it is what rax held
        return
    before = c.gpr(_RAX)
    c.set_gpr(_RAX, old)
    changed = c.sets[Gpr(_RAX)]
    c.sets[Gpr(_RAX)] = build("select", "i64", build("eq", "i1", expected, old), before, changed)
