"""Integers, addresses and flags of an instruction being described, and the effects that it collects."""

from __future__ import annotations

from layout_advise.errors import NotLiftedError
from layout_advise.mockup.ir.effects import (
    BITS,
    FS_BASE,
    AtomicEffect,
    CallEffect,
    Const,
    Effect,
    Expr,
    Flags,
    Gpr,
    LoadEffect,
    Location,
    Op,
    PrefetchEffect,
    Read,
    Semantics,
    SetEffect,
    StoreEffect,
    Temp,
    Ty,
)
from layout_advise.mockup.ir.expressions import build, const, part, trunc, zext
from layout_advise.mockup.ir.expressions import whole as joined
from layout_advise.mockup.machine.disassembly import Immediate, Insn, MemoryOperand, Operand, Register
from layout_advise.mockup.machine.semantics.elements import INTEGER


class Scalars:
    """One instruction being described: collects effects while the rule reads operands."""

    def __init__(self, insn: Insn) -> None:
        self.insn = insn
        self.vex = insn.vex or insn.evex
        """Whether what stands above the result in a vector register is cleared."""
        self.name = insn.mnemonic[1:] if self.vex and insn.mnemonic.startswith("v") else insn.mnemonic
        self.ops = insn.operands
        self.loads: list[LoadEffect] = []
        self.stores: list[StoreEffect] = []
        self.atomics: list[AtomicEffect] = []
        self.prefetches: list[PrefetchEffect] = []
        self.sets: dict[Location, Expr] = {}
        self.calls: list[CallEffect] = []
        self.packed = False
        self.width = 0

    def refuse(self, reason: str) -> NotLiftedError:
        """The error that stops the lifter here."""
        return self.insn.refuse(reason)

    def finish(self) -> Semantics:
        """The collected effects: loads, stores, sets (those that change nothing left out), calls."""
        sets = [
            SetEffect(at, value) for at, value in self.sets.items() if not (isinstance(value, Read) and value.location == at)
        ]
        effects: tuple[Effect, ...] = (*self.loads, *self.stores, *self.atomics, *self.prefetches, *sets, *self.calls)
        return Semantics(effects, self.packed, self.width)

    # -- integers ---------------------------------------------------------------------------------------------------------

    def gpr(self, number: int, size: int = 8, high: bool = False) -> Expr:
        """General register ``number`` read as ``size`` bytes (``high``: bits 8 to 15)."""
        whole = Read(Gpr(number), "i64")
        if high:
            return part(whole, 1, "i8")
        return trunc(INTEGER[size], whole)

    def set_gpr(self, number: int, value: Expr, high: bool = False) -> None:
        """Writes by x86's rule: 32-bit writes clear the upper half, narrower ones keep the rest."""
        whole = Read(Gpr(number), "i64")
        if value.ty == "i64":
            new = value
        elif value.ty == "i32":
            new = zext("i64", value)
        else:
            count = 64 // BITS[value.ty]
            parts = [value if k == int(high) else part(whole, k, value.ty) for k in range(count)]
            new = joined(parts)
        self.sets[Gpr(number)] = new

    def address(self, memory: MemoryOperand) -> Expr:
        """The i64 address of a memory operand without vector index."""
        if memory.narrow:
            raise self.refuse("32-bit address arithmetic")
        if memory.segment == "fs":
            return build("add", "i64", Read(FS_BASE, "i64"), self.effective(memory))
        if memory.segment is not None:
            raise self.refuse(f"thread-local memory ({memory.segment}:)")
        return self.effective(memory)

    def effective(self, memory: MemoryOperand) -> Expr:
        """Base plus scaled index plus displacement, as lea computes it."""
        total: Expr = const("i64", memory.displacement)
        if memory.index is not None:
            shift = Const("i64", memory.scale.bit_length() - 1)
            total = build("add", "i64", build("shl", "i64", Read(memory.index, "i64"), shift), total)
        if memory.base is not None:
            base = Read(memory.base, "i64")
            if isinstance(total, Const):
                return build("add", "i64", base, total)
            index = total.args[0] if isinstance(total, Op) and total.name == "add" else total
            total = build("add", "i64", build("add", "i64", base, index), const("i64", memory.displacement))
        return total

    def load(self, ty: Ty, address: Expr, part: int = 0, operand: int = 0, guard: Expr | None = None) -> Expr:
        """One load effect at ``address + part``; its value."""
        number = len(self.loads)
        at = build("add", "i64", address, Const("i64", part))
        self.loads.append(LoadEffect(number, ty, at, operand, part, guard))
        return Temp(number, ty)

    def store(self, address: Expr, value: Expr, part: int = 0, guard: Expr | None = None, operand: int = 0) -> None:
        """One store effect at ``address + part``."""
        at = build("add", "i64", address, Const("i64", part))
        self.stores.append(StoreEffect(value.ty, at, value, operand, part, guard))

    def size(self, operand: Operand) -> int:
        """Bytes of a register or memory operand."""
        assert not isinstance(operand, Immediate)
        return operand.bytes

    def integer(self, operand: Operand, size: int | None = None) -> Expr:
        """An integer operand of its own (or the given) size; immediates take the given size."""
        if isinstance(operand, Immediate):
            return const(INTEGER[size or 8], operand.value)
        if isinstance(operand, Register):
            if operand.kind != "gpr":
                raise self.refuse(f"register {operand.name}")
            return self.gpr(operand.number, size or operand.bytes, operand.high)
        return self.load(INTEGER[size or operand.bytes], self.address(operand))

    def set_integer(self, operand: Operand, value: Expr) -> None:
        """Writes an integer to a register or to memory."""
        if isinstance(operand, MemoryOperand):
            self.store(self.address(operand), value)
        elif isinstance(operand, Register) and operand.kind == "gpr":
            self.set_gpr(operand.number, value, operand.high)
        else:
            raise self.refuse("operand that is not lifted")

    def set_flags(self, name: str, *args: Expr) -> None:
        """The flags become ``flags.name(args)``."""
        self.sets[Flags()] = Op(f"flags.{name}", "flags", args)

    def step_flags(self, name: str, result: Expr) -> None:
        """inc and dec: the carry stays what it was."""
        self.set_flags(name, result, Read(Flags(), "flags"))

    def condition(self, cc: str) -> Expr:
        """Condition ``cc`` of the flags before the instruction."""
        return Op(f"cond.{cc}", "i1", (Read(Flags(), "flags"),))

    def immediate(self) -> int:
        """The last operand, an 8-bit immediate, unsigned."""
        last = self.ops[-1]
        if not isinstance(last, Immediate):
            raise self.refuse("operand form that is not lifted")
        return last.value & 0xFF
