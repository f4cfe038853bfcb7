"""x87: numbers of 80 bits on a stack of eight, whose registers are named from the top.

Pushing and popping renames all of them, so that in SSA form nothing of the stack is left. Compilers use it for ``long
double``. The control word must hold what programs start with: round to nearest, 64 bits of fraction. Instructions are told
by their encoding, as disassemblers name them differently (Intel's manual 2A, B.17; 1, 8.3).
"""

from __future__ import annotations

from layout_advise.mockup.ir.effects import X87, Const, Expr, Op, Read, Ty, X87Depth
from layout_advise.mockup.ir.expressions import build, const, sext
from layout_advise.mockup.machine.disassembly import Insn, MemoryOperand
from layout_advise.mockup.machine.semantics.context import Context

REGISTERS = 8
_ZERO, _ONE = Const("f80", 0), Const("f80", 0x3FFF << 64 | 1 << 63)
_PREFIXES = frozenset((*range(0x40, 0x50), 0x26, 0x2E, 0x36, 0x3E, 0x64, 0x65, 0x66, 0x67, 0xF2, 0xF3))
_ARITHMETIC = ("fadd", "fmul", "", "", "fsub", "fsub", "fdiv", "fdiv")
"""By the field that tells them apart; of each two that do not commute the second has its operands the other way round."""
_IN_MEMORY: dict[int, Ty] = {0xD8: "f32", 0xDC: "f64", 0xDA: "i32", 0xDE: "i16"}
_LOADS: dict[tuple[int, int], Ty] = {
    (0xD9, 0): "f32", (0xDD, 0): "f64", (0xDB, 0): "i32", (0xDF, 0): "i16", (0xDF, 5): "i64", (0xDB, 5): "f80",
}  # fmt: skip
_STORES: dict[tuple[int, int], tuple[Ty, bool]] = {
    (0xD9, 2): ("f32", False), (0xD9, 3): ("f32", True), (0xDD, 2): ("f64", False), (0xDD, 3): ("f64", True),
    (0xDB, 7): ("f80", True),
}  # fmt: skip
_MOVED_IF = {0xDA: ("b", "e", "be", "p"), 0xDB: ("ae", "ne", "a", "np")}


def encoding(insn: Insn) -> tuple[int, int] | None:
    """The opcode and the byte behind it of an x87 instruction; None for others."""
    code = insn.bytes
    start = next((k for k, byte in enumerate(code) if byte not in _PREFIXES), len(code))
    return (code[start], code[start + 1]) if start + 1 < len(code) and 0xD8 <= code[start] <= 0xDF else None


class _Stack:
    """The registers while an instruction is described."""

    def __init__(self, c: Context) -> None:
        self.c = c
        self.values: list[Expr] = [Read(X87(k), "f80") for k in range(REGISTERS)]
        self.pushed = 0

    def push(self, value: Expr) -> None:
        self.values = [value, *self.values[:-1]]
        self.pushed += 1

    def pop(self) -> Expr:
        top, *rest = self.values
        self.values = [*rest, Op("undefined", "f80", ())]
        self.pushed -= 1
        return top

    def finish(self) -> None:
        for number, value in enumerate(self.values):
            self.c.sets[X87(number)] = value
        if self.pushed:
            depth = Read(X87Depth(), "i64")
            self.c.sets[X87Depth()] = build("add", "i64", depth, const("i64", self.pushed))


def x87(c: Context, opcode: int, following: int) -> None:
    """The effects of one instruction; raises NotLiftedError for those that have no rule."""
    stack = _Stack(c)
    memory = next((op for op in c.ops if isinstance(op, MemoryOperand)), None)
    done = (
        _of_memory(c, stack, opcode, following >> 3 & 7, memory)
        if memory is not None
        else _plain(c, stack, opcode, following)
    )
    if not done:
        raise c.refuse("x87")
    stack.finish()


def _of_memory(c: Context, stack: _Stack, opcode: int, field: int, memory: MemoryOperand) -> bool:
    if (loaded := _LOADS.get((opcode, field))) is not None:
        stack.push(_loaded(c, loaded, memory))
    elif (stored := _STORES.get((opcode, field))) is not None:
        ty, pops = stored
        top = stack.values[0]
        c.store(c.address(memory), top if ty == "f80" else build("fptrunc", ty, top))
        if pops:
            stack.pop()
    elif opcode in _IN_MEMORY and _ARITHMETIC[field]:
        other = _loaded(c, _IN_MEMORY[opcode], memory)
        stack.values[0] = _computed(field, stack.values[0], other)
    else:
        return False
    return True


def _loaded(c: Context, ty: Ty, memory: MemoryOperand) -> Expr:
    """A number in memory as one of 80 bits, which holds it exactly."""
    value = c.load(ty, c.address(memory))
    if ty == "f80":
        return value
    if ty[0] == "f":
        return build("fpext", "f80", value)
    return build("sitofp", "f80", sext("i32", value) if ty == "i16" else value)


def _computed(field: int, first: Expr, second: Expr) -> Expr:
    """``first`` op ``second``, or the other way round."""
    swapped = field >= 4 and field % 2
    a, b = (second, first) if swapped else (first, second)
    return build(_ARITHMETIC[field], "f80", a, b)


def _plain(c: Context, stack: _Stack, opcode: int, following: int) -> bool:
    """Instructions on registers."""
    field, number = following >> 3 & 7, following & 7
    top, other = stack.values[0], stack.values[number]
    if opcode in (0xD8, 0xDC, 0xDE) and _ARITHMETIC[field]:
        if opcode == 0xD8:
            stack.values[0] = _computed(field, top, other)
        else:  # the result goes to the other register, and "reversed" is what the top is taken from
            stack.values[number] = _computed(field ^ 1 if field >= 4 else field, other, top)
            if opcode == 0xDE:
                stack.pop()
        return True
    if opcode in _MOVED_IF and field < 4:
        condition = c.condition(_MOVED_IF[opcode][field])
        stack.values[0] = build("select", "f80", condition, other, top)
        return True
    if opcode in (0xDB, 0xDF) and field in (5, 6):
        c.set_flags("fcmp", top, other)
        if opcode == 0xDF:
            stack.pop()
        return True
    return _moves(stack, opcode, field, number) or _on_top(stack, opcode, following)


def _moves(stack: _Stack, opcode: int, field: int, number: int) -> bool:
    top, other = stack.values[0], stack.values[number]
    match opcode, field:
        case 0xD9, 0:
            stack.push(other)
        case 0xD9, 1:
            stack.values[0], stack.values[number] = other, top
        case 0xDD, 2 | 3:
            stack.values[number] = top
            if field == 3:
                stack.pop()
        case _:
            return False
    return True


def _on_top(stack: _Stack, opcode: int, following: int) -> bool:
    top = stack.values[0]
    match opcode, following:
        case 0xD9, 0xE0:
            stack.values[0] = build("fneg", "f80", top)
        case 0xD9, 0xE1:
            stack.values[0] = build("fabs", "f80", top)
        case 0xD9, 0xE8:
            stack.push(_ONE)
        case 0xD9, 0xEE:
            stack.push(_ZERO)
        case 0xD9, 0xFA:
            stack.values[0] = build("fsqrt", "f80", top)
        case _:
            return False
    return True
