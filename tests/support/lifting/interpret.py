"""Runs :class:`layout_advise.mockup.ir.effects.Semantics` on a concrete state; the tests compare it with the processor."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from layout_advise.mockup.ir.effects import (
    BITS,
    X87,
    AtomicEffect,
    CallEffect,
    Const,
    Expr,
    Flags,
    Gpr,
    Lane,
    LoadEffect,
    MaskBit,
    Op,
    Read,
    Semantics,
    SetEffect,
    StoreEffect,
    Temp,
    Ty,
    X87Depth,
)
from layout_advise.mockup.ir.evaluate import evaluate
from layout_advise.mockup.machine.conditions import resolve


def flag_bits(carry: bool, zero: bool, sign: bool, overflow: bool, parity: bool) -> Op:
    """Known flags as a ``flags.bits`` operation."""
    return Op("flags.bits", "flags", tuple(Const("i1", int(b)) for b in (carry, zero, sign, overflow, parity)))


Registers = Mapping[Gpr | Lane | MaskBit, int]


@dataclass(frozen=True, slots=True)
class Changed(Registers):
    """Registers of which some have new values."""

    before: Registers
    new: dict[Gpr | Lane | MaskBit, int] = field(default_factory=dict)

    def __getitem__(self, place: Gpr | Lane | MaskBit) -> int:
        return self.new[place] if place in self.new else self.before[place]

    def __iter__(self) -> Iterator[Gpr | Lane | MaskBit]:
        return iter({**self.before, **self.new})

    def __len__(self) -> int:
        return len({*self.before, *self.new})


@dataclass(frozen=True, slots=True)
class State:
    """Registers and memory. ``flags`` is a ``flags.*`` operation over constants.

    ``memory`` holds bytes by address; an access to an address that it lacks raises KeyError.
    """

    registers: Registers
    memory: Mapping[int, int] = field(default_factory=dict)
    flags: Expr = field(default_factory=lambda: flag_bits(False, False, False, False, False))


def step(semantics: Semantics, before: State) -> State:
    """The state after the instruction: loads first, then all stores and sets from the state before it."""
    temps: dict[int, int] = {}

    def value(expr: Expr) -> int:
        return compute(expr, before, temps)

    memory = dict(before.memory)
    registers = Changed(before.registers)
    flags = before.flags
    for effect in semantics.effects:
        match effect:
            case LoadEffect(number, ty, address, guard=guard):
                taken = guard is None or value(guard)
                temps[number] = _read(before.memory, value(address), BITS[ty] // 8) if taken else 0
            case StoreEffect(ty, address, stored, guard=guard):
                if guard is None or value(guard):
                    at = value(address)
                    for i, byte in enumerate(value(stored).to_bytes(BITS[ty] // 8, "little")):
                        if at + i not in memory:
                            raise KeyError(at + i)
                        memory[at + i] = byte
            case AtomicEffect(number, ty, operation, address, args):
                at, size = value(address), BITS[ty] // 8
                temps[number] = _read(before.memory, at, size)
                left = _left(operation, ty, temps[number], tuple(value(a) for a in args))
                memory.update({at + i: byte for i, byte in enumerate(left.to_bytes(size, "little"))})
            case SetEffect(Flags(), new):
                flags = _flags(new, before, value)
            case SetEffect(location, new) if not isinstance(location, Flags | X87 | X87Depth):
                registers.new[location] = value(new)
            case CallEffect():
                raise ValueError("calls are not interpreted")
    return State(registers, memory, flags)


def condition(cc: str, state: State) -> bool:
    """Condition ``cc`` of the state's flags; raises ``UndefinedFlagError`` where a flag it reads is undefined."""
    return bool(compute(resolve(cc, state.flags), state, {}))


def compute(expr: Expr, state: State, temps: Mapping[int, int]) -> int:
    """The bit pattern of ``expr`` in ``state``; ``temps`` are the values of the instruction's loads."""
    match expr:
        case Const(_, value):
            return value
        case Temp(number, _):
            return temps[number]
        case Read(location, _):
            if isinstance(location, Flags | X87 | X87Depth):
                raise ValueError("flags are not a number, and numbers of 80 bits are not interpreted")
            return state.registers[location]
        case Op(name, _, args) if name.startswith("cond."):
            return compute(resolve(name.removeprefix("cond."), state.flags), state, temps)
        case Op(name, ty, args):
            values = tuple(compute(a, state, temps) for a in args)
            return evaluate(name, ty, values, tuple(a.ty for a in args))


def _read(memory: Mapping[int, int], address: int, size: int) -> int:
    return int.from_bytes(bytes(memory[address + i] for i in range(size)), "little")


def _left(operation: str, ty: Ty, old: int, args: tuple[int, ...]) -> int:
    """The value that an atomic operation leaves in memory."""
    match operation:
        case "xchg":
            return args[0]
        case "cas":
            return args[1] if old == args[0] else old
    return evaluate(operation, ty, (old, args[0]), (ty, ty))


def _flags(new: Expr, before: State, value: Callable[[Expr], int]) -> Expr:
    """The flags operation with constants for its arguments."""
    if isinstance(new, Read):
        return before.flags
    assert isinstance(new, Op)
    args: list[Expr] = []
    for a in new.args:
        if a.ty == "flags":
            args.append(before.flags)
        elif isinstance(a, Op) and a.name == "undefined":
            args.append(a)
        else:
            args.append(Const(a.ty, value(a)))
    return Op(new.name, "flags", tuple(args))
