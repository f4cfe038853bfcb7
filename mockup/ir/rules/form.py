"""The two forms of expressions that one table of rules simplifies, seen alike.

* :data:`layout_advise.mockup.ir.effects.Expr`: what one instruction computes from machine state;
* :class:`layout_advise.mockup.ir.node.Node`: the hash-consed values of a whole region.

Of both a rule reads ``op`` (``const`` for constants), ``ty``, ``args`` and ``imm`` (the bit pattern of a constant), and
``==`` tells whether two are the same value. It makes new ones through a :class:`ValueForm`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Generic, Protocol, TypeVar

from layout_advise.mockup.ir.effects import BITS, Expr, Ty, mask
from layout_advise.mockup.ir.node import Node

T = TypeVar("T", Expr, Node)

HALF: dict[Ty, Ty] = {"i64": "i32", "i32": "i16", "i16": "i8"}
"""The integer type of half the width."""
DOUBLE: dict[Ty, Ty] = {half: whole for whole, half in HALF.items()}
HIGH: dict[Ty, str] = {"i64": "hi32", "i32": "hi16", "i16": "hi8"}
"""The operation that takes the upper half of a value of this type."""


class ValueForm(ABC, Generic[T]):
    """Makes the values of one form, simplified or not."""

    @abstractmethod
    def raw(self, op: str, ty: Ty, args: tuple[T, ...] = ()) -> T:
        """``op(args)`` of type ``ty`` as it stands."""

    @abstractmethod
    def const(self, ty: Ty, value: int) -> T:
        """The constant ``value`` modulo the width of ``ty``."""

    @abstractmethod
    def build(self, op: str, ty: Ty, *args: T) -> T:
        """``op(args)`` of type ``ty``, simplified (:func:`layout_advise.mockup.ir.rules.table.simplified`)."""

    @abstractmethod
    def own_rule(self, op: str, ty: Ty, args: tuple[T, ...]) -> T | None:
        """``op(args)`` simplified by a rule of this form alone, tried before the table; None where there is none."""

    @abstractmethod
    def ordered(self, op: str, a: T, b: T) -> tuple[T, T]:
        """The operands of a commutative operation, none of them constant, in this form's canonical order."""

    def bitcast(self, ty: Ty, x: T) -> T:
        """The bits of ``x`` as ``ty`` (same width)."""
        return self.build("bitcast", ty, x)

    def lo32(self, x: T) -> T:
        """The low half of an i64, as i32."""
        return self.build("lo32", "i32", x)

    def hi32(self, x: T) -> T:
        """The high half of an i64, as i32."""
        return self.build("hi32", "i32", x)

    def low(self, x: T) -> T:
        """The low half of an i64, i32 or i16."""
        return self.trunc(HALF[x.ty], x)

    def high(self, x: T) -> T:
        """The high half of an i64, i32 or i16."""
        return self.build(HIGH[x.ty], HALF[x.ty], x)

    def pair(self, low: T, high: T) -> T:
        """The integer with these halves."""
        return self.build("pair", DOUBLE[low.ty], low, high)

    def part(self, x: T, number: int, ty: Ty) -> T:
        """Element ``number`` (the lowest is 0) of those of type ``ty`` that make up the integer ``x``."""
        if x.ty == ty:
            return x
        half = BITS[x.ty] // BITS[ty] // 2
        return self.part(self.low(x) if number < half else self.high(x), number % half, ty)

    def whole(self, parts: Sequence[T]) -> T:
        """The integer that is made up of these, the lowest first; their number is a power of two."""
        while len(parts) > 1:
            parts = [self.pair(parts[i], parts[i + 1]) for i in range(0, len(parts), 2)]
        return parts[0]

    def zext(self, ty: Ty, x: T) -> T:
        """``x`` widened with zeros."""
        return self.build("zext", ty, x)

    def sext(self, ty: Ty, x: T) -> T:
        """``x`` widened with its sign."""
        return self.build("sext", ty, x)

    def trunc(self, ty: Ty, x: T) -> T:
        """The low bits of ``x``."""
        return self.build("trunc", ty, x)

    def negate(self, condition: T) -> T:
        """The opposite of an i1."""
        return self.build("not", "i1", condition)

    def select(self, ty: Ty, condition: T, yes: T, no: T) -> T:
        """``yes`` where the i1 ``condition`` holds, else ``no``."""
        return self.build("select", ty, condition, yes, no)


class ExpressionRule(Protocol):
    """An equality of bit patterns: the simpler value of an operation on ``args``, or None where the rule does not apply."""

    def __call__(self, f: ValueForm[T], ty: Ty, args: tuple[T, ...], /) -> T | None: ...


def is_const(x: T, value: int) -> bool:
    """Returns whether ``x`` is the constant ``value``, a bit pattern taken modulo the width."""
    return x.op == "const" and bool(x.imm == value & mask(x.ty))


def widens_bit(x: T) -> bool:
    """Returns whether ``x`` is an i1 widened by its sign: a mask of all ones or none, as vector compares make it."""
    return x.op == "sext" and x.args[0].ty == "i1"
