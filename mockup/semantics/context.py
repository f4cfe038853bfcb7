"""What a semantics rule works with: operands as typed expressions in, effects out."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from layout_advise.errors import NotLiftedError
from layout_advise.mockup.disasm import Immediate, Insn, Memory, Operand, Register
from layout_advise.mockup.effects import (
    BITS,
    FS_BASE,
    AtomicEffect,
    CallEffect,
    Const,
    Effect,
    Expr,
    Flags,
    Gpr,
    Lane,
    LoadEffect,
    Location,
    MaskBit,
    Op,
    Read,
    Semantics,
    SetEffect,
    StoreEffect,
    Temp,
    Ty,
)
from layout_advise.mockup.expr import FALSE, bitcast, build, const, hi32, lo32, pair, sext, trunc, zext
from layout_advise.mockup.semantics.grains import GRAINS
from layout_advise.tracer.clone.evex import Elements, Evex, elements_of

INTEGER: dict[int, Ty] = {1: "i8", 2: "i16", 4: "i32", 8: "i64"}
"""The integer type of so many bytes."""
ZERO = Const("i64", 0)
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


class Context:
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
        effects: tuple[Effect, ...] = (*self.loads, *self.stores, *self.atomics, *sets, *self.calls)
        return Semantics(effects, self.packed, self.width)

    # -- integers ---------------------------------------------------------------------------------------------------------

    def gpr(self, number: int, size: int = 8, high: bool = False) -> Expr:
        """General register ``number`` read as ``size`` bytes (``high``: bits 8 to 15)."""
        whole = Read(Gpr(number), "i64")
        if high:
            return trunc("i8", build("lshr", "i64", whole, Const("i64", 8)))
        return trunc(INTEGER[size], whole)

    def set_gpr(self, number: int, value: Expr, high: bool = False) -> None:
        """Writes by x86's rule: 32-bit writes clear the upper half, narrower ones keep the rest."""
        whole = Read(Gpr(number), "i64")
        if value.ty == "i64":
            new = value
        elif value.ty == "i32":
            new = zext("i64", value)
        else:
            shift = 8 if high else 0
            mask = ((1 << BITS[value.ty]) - 1) << shift
            kept = build("and", "i64", whole, const("i64", ~mask))
            placed = build("shl", "i64", zext("i64", value), Const("i64", shift))
            new = build("or", "i64", kept, placed)
        self.sets[Gpr(number)] = new

    def address(self, memory: Memory) -> Expr:
        """The i64 address of a memory operand without vector index."""
        if memory.narrow:
            raise self.refuse("32-bit address arithmetic")
        if memory.segment == "fs":
            return build("add", "i64", Read(FS_BASE, "i64"), self.effective(memory))
        if memory.segment is not None:
            raise self.refuse(f"thread-local memory ({memory.segment}:)")
        return self.effective(memory)

    def effective(self, memory: Memory) -> Expr:
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

    def indexed(self, memory: Memory, index_type: Ty, count: int) -> list[Expr]:
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
        if isinstance(operand, Memory):
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
        if isinstance(operand, Memory) and (self.insn.broadcast or self.insn.mask):
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

    def store_elements(self, memory: Memory, elements: Sequence[Expr]) -> None:
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

    def _governed(self, memory: Memory) -> Elements | None:
        """The elements of a memory operand as the tracer tells them apart; None where all of it is accessed."""
        insn = self.insn
        prefix = Evex(insn.mask, insn.broadcast, insn.vector_bytes)
        found = elements_of(insn.mnemonic, prefix, memory.bytes, immediate=isinstance(insn.operands[-1], Immediate))
        if found is not None and (found.counted or found.bytes * len(found.bits) != memory.bytes):
            raise self.refuse("a memory operand under a mask that is not known")
        return found

    def _any(self, bits: int) -> Expr:
        """Whether one of these bits of the governing mask is set."""
        total: Expr = FALSE
        for number in range(bits.bit_length()):
            if bits >> number & 1:
                total = build("or", "i1", self.permit(number), total)
        return total

    def _broadcast(self, memory: Memory, found: Elements | None, ty: Ty, size: int) -> list[Expr]:
        """One element of memory for all."""
        guard = self._any(found.bits[0]) if found is not None else None
        value = self.load(INTEGER[memory.bytes], self.address(memory), guard=guard)
        return recast([value] * (size // memory.bytes), ty)

    def _permitted(self, memory: Memory, found: Elements, ty: Ty, size: int) -> list[Expr]:
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


def split(lanes: Sequence[Expr], ty: Ty) -> list[Expr]:
    """i64 lanes as elements of ``ty``, lowest first."""
    if ty in ("i64", "f64"):
        return [bitcast(ty, lane) for lane in lanes]
    if ty in ("i32", "f32"):
        return [bitcast(ty, half(lane)) for lane in lanes for half in (lo32, hi32)]
    bits = BITS[ty]
    return [trunc(ty, build("lshr", "i64", lane, Const("i64", at))) for lane in lanes for at in range(0, 64, bits)]


def join(elements: Sequence[Expr]) -> list[Expr]:
    """Elements of one type as i64 lanes; inverse of :func:`split`. Their number fills whole lanes."""
    ty = elements[0].ty
    if BITS[ty] == 64:
        return [bitcast("i64", e) for e in elements]
    if BITS[ty] == 32:
        halves = [bitcast("i32", e) for e in elements]
        return [pair(halves[i], halves[i + 1]) for i in range(0, len(halves), 2)]
    count = 64 // BITS[ty]
    return [_pack(elements[i : i + count]) for i in range(0, len(elements), count)]


def recast(elements: Sequence[Expr], ty: Ty) -> list[Expr]:
    """The same bits as elements of ``ty``."""
    if BITS[elements[0].ty] == BITS[ty]:
        return [bitcast(ty, element) for element in elements]
    if sum(BITS[e.ty] for e in elements) < 64:
        raise AssertionError("elements that do not fill a lane")
    return split(join(elements), ty)


def _pack(elements: Sequence[Expr]) -> Expr:
    source = _unpacked(elements[0])
    if source is not None and split([source], elements[0].ty) == list(elements):
        return source
    total: Expr = ZERO
    for index, element in enumerate(elements):
        at = Const("i64", index * BITS[element.ty])
        total = build("or", "i64", total, build("shl", "i64", zext("i64", element), at))
    return total


def _unpacked(element: Expr) -> Expr | None:
    """The lane that ``element`` is the lowest part of, if it plainly is."""
    return element.args[0] if isinstance(element, Op) and element.name == "trunc" and element.args[0].ty == "i64" else None


def merge(value: Expr, lane: Expr) -> Expr:
    """``lane`` with its low bits replaced by ``value``."""
    if BITS[value.ty] == 64:
        return bitcast("i64", value)
    return pair(bitcast("i32", value), hi32(lane))
