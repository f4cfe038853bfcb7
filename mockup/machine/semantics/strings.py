"""Single string instructions: one element moved, stored or loaded, and the pointers advanced. The ABI keeps the direction
flag clear at calls, and what sets it has no rule, so they go upwards."""

from __future__ import annotations

from layout_advise.mockup.ir.effects import Const, Gpr
from layout_advise.mockup.ir.expressions import build
from layout_advise.mockup.machine.disassembly import MemoryOperand, Operand
from layout_advise.mockup.machine.semantics.context import Context, rule
from layout_advise.mockup.machine.semantics.elements import INTEGER

_SUFFIXES = "bwdq"


def move_string(c: Context) -> None:
    """``movsb`` and its wider forms: from where rsi points to where rdi points. The tracer numbers the destination first."""
    dest, source = (_element(c, operand) for operand in c.ops)
    value = c.load(INTEGER[source.bytes], c.address(source), operand=1)
    c.store(c.address(dest), value)
    _advance(c, dest, source)


@rule(*(f"stos{suffix}" for suffix in _SUFFIXES))
def store_string(c: Context) -> None:
    dest = _element(c, c.ops[0])
    c.store(c.address(dest), c.integer(c.ops[1], dest.bytes))
    _advance(c, dest)


@rule(*(f"lods{suffix}" for suffix in _SUFFIXES))
def load_string(c: Context) -> None:
    source = _element(c, c.ops[1])
    c.set_integer(c.ops[0], c.integer(source))
    _advance(c, source)


rule("movsb", "movsw", "movsq")(move_string)  # movsd is also the name of a vector move, whose rule comes here


def _element(c: Context, operand: Operand) -> MemoryOperand:
    if not isinstance(operand, MemoryOperand) or operand.base is None:
        raise c.refuse("operand form that is not lifted")
    return operand


def _advance(c: Context, *elements: MemoryOperand) -> None:
    for element in elements:
        assert isinstance(element.base, Gpr)
        c.set_gpr(element.base.number, build("add", "i64", c.gpr(element.base.number), Const("i64", element.bytes)))
