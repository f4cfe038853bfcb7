"""The working context of a semantics rule: operands as typed expressions in, effects out."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from layout_advise.mockup.ir.effects import BITS, Const, Expr, Gpr, Lane, MaskBit, Read, Ty
from layout_advise.mockup.ir.expressions import FALSE, build, const, sext, zext
from layout_advise.mockup.machine.disassembly import Immediate, MemoryOperand, Operand, Register
from layout_advise.mockup.machine.semantics.element_types import GRAINS
from layout_advise.mockup.machine.semantics.elements import INTEGER, ZERO, join, merge, recast, split
from layout_advise.mockup.machine.semantics.scalars import Scalars
from layout_advise.tracer.code.evex import Elements, Evex, elements_of

LANES = 8
MASK_BITS = 64
Rule = Callable[["Context"], None]
TABLE: dict[str, Rule] = {}
"""Rules by mnemonic, without the ``v`` of VEX forms."""


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Registers a function as the rule of these mnemonics (VEX forms are found under the same name)."""

    def register(function: Rule) -> Rule:
        for name in names:
            assert name not in TABLE, name
            TABLE[name] = function
        return function

    return register


class Context(Scalars):
    """One instruction being described: collects effects while the rule reads operands."""

    # -- vectors ----------------------------------------------------------------------------------------------------------

    def vector(self, operand: Operand) -> Register:
        """The operand, which must be an xmm or ymm register."""
        if not (isinstance(operand, Register) and operand.kind == "vector"):
            raise self.refuse("operand form that is not lifted")
        return operand

    def sources(self) -> tuple[Register, Operand, Operand]:
        """``(destination, first source, second source)`` of a two-source operation, legacy or VEX."""
        dest = self.vector(self.ops[0])
        operands = [op for op in self.ops if not isinstance(op, Immediate)]
        if len(operands) == 2:
            return dest, dest, operands[1]
        return dest, operands[1], operands[2]

    def lanes(self, operand: Operand, size: int) -> list[Expr]:
        """The first ``size`` bytes of a vector operand as i64 lanes (or as i64 load pieces)."""
        return self.elements(operand, "i64", size)

    def elements(self, operand: Operand, ty: Ty, size: int) -> list[Expr]:
        """The first ``size`` bytes of a vector operand as elements of ``ty``; memory is loaded in pieces of ``ty``
        (8- and 16-bit elements in 64-bit pieces, or one narrower piece where the operand is narrower)."""
        width = BITS[ty] // 8
        if isinstance(operand, MemoryOperand) and (self.insn.broadcast or self.insn.mask):
            found = self._governed(operand)
            if self.insn.broadcast:
                return self._broadcast(operand, found, ty, size)
            if found is not None:
                return self._permitted(operand, found, ty, size)
        if isinstance(operand, Register):
            register = self.vector(operand)
            lanes: list[Expr] = [Read(Lane(register.number, i), "i64") for i in range((size + 7) // 8)]
            return split(lanes, ty)[: size // width]
        if isinstance(operand, Immediate):
            raise self.refuse("operand form that is not lifted")
        address = self.address(operand)
        if width >= 4:
            return [self.load(ty, address, part) for part in range(0, size, width)]
        if size < 8:
            whole = self.load(INTEGER[size], address)
            return split([zext("i64", whole)], ty)[: size // width]
        return split([self.load("i64", address, part) for part in range(0, size, 8)], ty)

    def scalar(self, operand: Operand, ty: Ty) -> Expr:
        """The lowest element of a vector register, or a scalar in memory."""
        return self.elements(operand, ty, BITS[ty] // 8)[0]

    def set_vector(self, register: Register, elements: Sequence[Expr], masked: int | None = None) -> None:
        """Writes elements to the low part of a register: VEX clears all above, legacy keeps it. A governing mask chooses
        between the first ``masked`` elements (without it: all) and what stood there."""
        lanes = join(elements)
        if self.insn.mask:
            lanes = self._chosen(register, lanes, masked)
        self._write(register, lanes)

    def _write(self, register: Register, lanes: list[Expr]) -> None:
        if self.vex:
            lanes = lanes + [ZERO] * (LANES - len(lanes))
        for index, value in enumerate(lanes):
            self.sets[Lane(register.number, index)] = value

    def set_scalar(self, dest: Register, value: Expr, rest: Operand) -> None:
        """Writes a scalar result: the other bits of the low 16 bytes come from ``rest`` (legacy: the destination)."""
        other = self.lanes(rest, 16)
        self.set_lowest(dest, value, other)

    def set_lowest(self, dest: Register, value: Expr, other: Sequence[Expr]) -> None:
        """Writes a scalar result, where the governing mask permits it, with the other bits of two lanes."""
        if self.insn.mask:
            old = Const(value.ty, 0) if self.insn.zeroing else self.scalar(dest, value.ty)
            value = build("select", value.ty, self.permit(0), value, old)
        self._write(dest, [merge(value, other[0]), other[1]])

    def set_packed(self, register: Register, elements: Sequence[Expr], masked: int | None = None) -> None:
        """As :meth:`set_vector`, and marks the instruction as packed."""
        self.set_vector(register, elements, masked)
        self.mark(sum(BITS[e.ty] for e in elements) // 8)

    def mark(self, width: int) -> None:
        """The instruction is a packed operation of ``width`` bytes; one under a mask does other things in each lane."""
        if not self.insn.mask:
            self.packed, self.width = True, width

    def vector_size(self) -> int:
        """Bytes of the vector operation: 32 where a ymm register takes part, else 16; AVX-512 instructions say it."""
        if self.insn.evex:
            return self.insn.vector_bytes
        return 32 if any(isinstance(op, Register) and op.bytes == 32 for op in self.ops) else 16

    def store_elements(self, memory: MemoryOperand, elements: Sequence[Expr]) -> None:
        """Stores elements one after the other, under a governing mask those that it permits."""
        address = self.address(memory)
        if self.insn.mask:
            found = self._governed(memory)
            if found is None:
                raise self.refuse("a store under a mask whose elements are not known")
            for number, value in enumerate(recast(elements, INTEGER[found.bytes])):
                at = build("add", "i64", address, Const("i64", number * found.bytes))
                self.store(at, value, guard=self._any(found.bits[number]), operand=number)
            return
        part = 0
        for element in elements:
            self.store(address, element, part)
            part += BITS[element.ty] // 8

    # -- masks ------------------------------------------------------------------------------------------------------------

    def permit(self, number: int) -> Expr:
        """Bit ``number`` of the governing mask."""
        return Read(MaskBit(self.insn.mask, number), "i1")

    def bits(self, operand: Operand, count: int) -> list[Expr]:
        """The lowest bits of a mask register."""
        if not (isinstance(operand, Register) and operand.kind == "mask"):
            raise self.refuse("operand form that is not lifted")
        return [Read(MaskBit(operand.number, i), "i1") for i in range(count)]

    def set_chosen(self, register: Register, elements: Sequence[Expr]) -> None:
        """Writes elements between which the governing mask has chosen already."""
        self._write(register, join(elements))

    def clear_governing(self) -> None:
        """The governing mask register becomes 0: gathers and scatters leave it so."""
        for index in range(MASK_BITS):
            self.sets[MaskBit(self.insn.mask, index)] = FALSE

    def set_bits(self, operand: Operand, bits: Sequence[Expr]) -> None:
        """Writes a mask register: the lowest bits, where a governing mask permits them, and zeros above."""
        if not (isinstance(operand, Register) and operand.kind == "mask"):
            raise self.refuse("operand form that is not lifted")
        if self.insn.mask:
            bits = [build("and", "i1", self.permit(i), bit) for i, bit in enumerate(bits)]
        for index, bit in enumerate((*bits, *[FALSE] * (MASK_BITS - len(bits)))):
            self.sets[MaskBit(operand.number, index)] = bit

    def _governed(self, memory: MemoryOperand) -> Elements | None:
        """The elements of a memory operand as the tracer tells them apart; None where all of it is accessed."""
        insn = self.insn
        prefix = Evex(insn.mask, insn.broadcast, insn.vector_bytes)
        found = elements_of(insn.mnemonic, prefix, memory.bytes, immediate=isinstance(insn.operands[-1], Immediate))
        if found is not None and (found.counted or found.bytes * len(found.bits) != memory.bytes):
            raise self.refuse("a memory operand under a mask that is not known")
        return found

    def _any(self, bits: int) -> Expr:
        """The i1 that is true where one of these bits of the governing mask is set."""
        total: Expr = FALSE
        for number in range(bits.bit_length()):
            if bits >> number & 1:
                total = build("or", "i1", self.permit(number), total)
        return total

    def _broadcast(self, memory: MemoryOperand, found: Elements | None, ty: Ty, size: int) -> list[Expr]:
        """One element of memory for all."""
        guard = self._any(found.bits[0]) if found is not None else None
        value = self.load(INTEGER[memory.bytes], self.address(memory), guard=guard)
        return recast([value] * (size // memory.bytes), ty)

    def _permitted(self, memory: MemoryOperand, found: Elements, ty: Ty, size: int) -> list[Expr]:
        """Elements of memory, each loaded where the governing mask permits it."""
        address, piece = self.address(memory), min(found.bytes, 8)
        loaded: list[Expr] = []
        for number, bits in enumerate(found.bits):
            at = build("add", "i64", address, Const("i64", number * found.bytes))
            guard = self._any(bits)
            loaded += [self.load(INTEGER[piece], at, part, number, guard) for part in range(0, found.bytes, piece)]
        loaded += [Const(loaded[0].ty, 0)] * (-len(loaded) % (8 // piece))
        return recast(loaded, ty)[: size * 8 // BITS[ty]]

    def _chosen(self, register: Register, lanes: list[Expr], masked: int | None) -> list[Expr]:
        """``lanes`` where the governing mask permits them, else what stood there, or zeros."""
        ty = GRAINS[self.name]
        if ty is None:
            raise self.refuse("a mask on an instruction that has none")
        new = split(lanes, ty)
        old = [Const(ty, 0)] * len(new) if self.insn.zeroing else self.elements(register, ty, 8 * len(lanes))
        count = len(new) if masked is None else masked
        chosen = [build("select", ty, self.permit(i), new[i], old[i]) for i in range(count)]
        return join([*chosen, *new[count:]])

    def indexed(self, memory: MemoryOperand, index_type: Ty, count: int) -> list[Expr]:
        """The addresses of a gather or scatter."""
        if memory.vector_index is None:
            raise self.refuse("operand form that is not lifted")
        if memory.segment is not None or memory.narrow:
            raise self.refuse("thread-local memory or 32-bit addresses in a gather")
        base = Read(memory.base, "i64") if isinstance(memory.base, Gpr) else ZERO
        shift = Const("i64", memory.scale.bit_length() - 1)
        found: list[Expr] = []
        for at in self.elements(memory.vector_index, index_type, count * BITS[index_type] // 8):
            scaled = build("shl", "i64", sext("i64", at), shift)
            found.append(build("add", "i64", build("add", "i64", base, scaled), const("i64", memory.displacement)))
        return found
