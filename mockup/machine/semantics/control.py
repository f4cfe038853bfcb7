"""Control transfers, stack instructions, and what does nothing."""

from __future__ import annotations

from layout_advise.mockup.ir.effects import CALL_TARGET, CallEffect, Const, Gpr, Lane, PrefetchEffect, Read, Semantics
from layout_advise.mockup.ir.expressions import build
from layout_advise.mockup.machine.cfg import CONDITIONS
from layout_advise.mockup.machine.disassembly import Immediate, Insn, MemoryOperand
from layout_advise.mockup.machine.semantics.context import LANES, Context, rule
from layout_advise.mockup.machine.semantics.elements import ZERO

_RSP, _RBP = 4, 5


@rule(
    "nop", "endbr64", "endbr32", "lfence", "mfence", "sfence", "pause", "jmp", "ret", "ud2", "hlt", "int3", "ud0", "ud1",
    "clflush", "clflushopt", "cld",
    *(f"j{cc}" for cc in CONDITIONS),
)  # fmt: skip
def nothing(c: Context) -> None:
    """No effect, or only on control."""


@rule(*(f"prefetch{hint}" for hint in ("t0", "t1", "t2", "nta", "", "w", "wt1")))
def prefetch(c: Context) -> None:
    """None that a program can see; without it a mock-up would wait for memory where the original does not."""
    assert isinstance(c.ops[0], MemoryOperand)
    c.prefetches.append(PrefetchEffect(c.address(c.ops[0]), c.name.removeprefix("prefetch")))


@rule("call")
def call(c: Context) -> None:
    target = c.ops[0]
    if isinstance(target, Immediate):
        c.calls.append(CallEffect(target.value, None))
    elif isinstance(target, MemoryOperand) and target.base is None and target.index is None and target.segment is None:
        c.calls.append(CallEffect(target.displacement, None))
    else:
        raise c.refuse("indirect call")


def call_target(insn: Insn) -> Semantics:
    """The effects of an indirect call or jump before control is transferred: its target goes to ``CALL_TARGET``."""
    c = Context(insn)
    c.sets[CALL_TARGET] = c.integer(insn.operands[0], 8)
    return c.finish()


@rule("push")
def push(c: Context) -> None:
    operand = c.ops[0]
    size = 8 if isinstance(operand, Immediate) else c.size(operand)
    if size != 8:
        raise c.refuse("16-bit push")
    value = c.integer(operand, 8)
    top = build("add", "i64", Read(Gpr(_RSP), "i64"), Const("i64", 2**64 - 8))
    c.store(top, value, operand=1 if isinstance(operand, MemoryOperand) else 0)  # operand 0 is the one that is written out
    c.set_gpr(_RSP, top)


@rule("pop")
def pop(c: Context) -> None:
    if isinstance(c.ops[0], MemoryOperand) or c.size(c.ops[0]) != 8:
        raise c.refuse("pop that is not of a 64-bit register")
    top = Read(Gpr(_RSP), "i64")
    c.set_gpr(_RSP, build("add", "i64", top, Const("i64", 8)))
    c.set_integer(c.ops[0], c.load("i64", top))


@rule("leave")
def leave(c: Context) -> None:
    frame = Read(Gpr(_RBP), "i64")
    c.set_gpr(_RSP, build("add", "i64", frame, Const("i64", 8)))
    c.set_gpr(_RBP, c.load("i64", frame))


@rule("zeroupper")
def zeroupper(c: Context) -> None:
    for number in range(16):
        for index in range(2, LANES):
            c.sets[Lane(number, index)] = ZERO


@rule("zeroall")
def zeroall(c: Context) -> None:
    for number in range(16):
        for index in range(LANES):
            c.sets[Lane(number, index)] = ZERO
