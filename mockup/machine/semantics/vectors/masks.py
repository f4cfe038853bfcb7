"""AVX-512: what makes and combines masks, and what chooses by them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product

from layout_advise.mockup.ir.effects import BITS, Const, Expr, Ty
from layout_advise.mockup.ir.expressions import build, negate, sext, trunc, zext
from layout_advise.mockup.machine.conditions import FALSE
from layout_advise.mockup.machine.disassembly import MemoryOperand, Register
from layout_advise.mockup.machine.semantics.context import Context, rule
from layout_advise.mockup.machine.semantics.elements import INTEGER
from layout_advise.mockup.machine.semantics.vectors.packed_integer import integer_predicate

_COUNTS = {"b": 8, "w": 16, "d": 32, "q": 64}
_ELEMENT: dict[str, Ty] = {"b": "i8", "w": "i16", "d": "i32", "q": "i64"}


def _count(c: Context) -> int:
    """The number of bits that a mask instruction works on, by its last letter."""
    return _COUNTS[c.name[-1]]


def gathered(bits: Sequence[Expr]) -> Expr:
    """Bits as an integer of as many."""
    ty: Ty = "i64" if len(bits) == 64 else "i32"
    total: Expr = Const(ty, 0)
    for number, bit in enumerate(bits):
        total = build("or", ty, total, build("shl", ty, zext(ty, bit), Const(ty, number)))
    return trunc(INTEGER[len(bits) // 8], total)


def spread(value: Expr) -> list[Expr]:
    """The bits of an integer."""
    return [trunc("i1", build("lshr", value.ty, value, Const(value.ty, number))) for number in range(BITS[value.ty])]


@rule(*(f"kmov{size}" for size in "bwdq"))
def move_mask(c: Context) -> None:
    dest, source = c.ops
    count = _count(c)
    from_mask = isinstance(source, Register) and source.kind == "mask"
    if isinstance(dest, Register) and dest.kind == "mask":
        c.set_bits(dest, c.bits(source, count) if from_mask else spread(c.integer(source, count // 8)))
        return
    value = gathered(c.bits(source, count))
    if isinstance(dest, MemoryOperand):
        c.store_elements(dest, [value])
    else:
        c.set_integer(dest, value if count == 64 else zext("i32", value))


_LOGIC: dict[str, Callable[[Expr, Expr], Expr]] = {
    "and": lambda a, b: build("and", "i1", a, b),
    "andn": lambda a, b: build("and", "i1", negate(a), b),
    "or": lambda a, b: build("or", "i1", a, b),
    "xor": lambda a, b: build("xor", "i1", a, b),
    "xnor": lambda a, b: negate(build("xor", "i1", a, b)),
}


@rule(*(f"k{name}{size}" for name, size in product(_LOGIC, "bwdq")))
def combine(c: Context) -> None:
    compute = _LOGIC[c.name[1:-1]]
    pairs = zip(c.bits(c.ops[1], _count(c)), c.bits(c.ops[2], _count(c)), strict=True)
    c.set_bits(c.ops[0], [compute(a, b) for a, b in pairs])


@rule(*(f"knot{size}" for size in "bwdq"))
def invert(c: Context) -> None:
    c.set_bits(c.ops[0], [negate(bit) for bit in c.bits(c.ops[1], _count(c))])


@rule(*(f"kadd{size}" for size in "bwdq"))
def add(c: Context) -> None:
    a, b = (gathered(c.bits(op, _count(c))) for op in c.ops[1:])
    c.set_bits(c.ops[0], spread(build("add", a.ty, a, b)))


@rule(*(f"kshift{way}{size}" for way, size in product("lr", "bwdq")))
def shift(c: Context) -> None:
    count = _count(c)
    by = min(c.immediate(), count)
    bits, zeros = c.bits(c.ops[1], count), [FALSE] * by
    c.set_bits(c.ops[0], [*zeros, *bits][:count] if c.name[6] == "l" else [*bits, *zeros][by:])


@rule("kunpckbw", "kunpckwd", "kunpckdq")
def unpack(c: Context) -> None:
    half = _count(c) // 2
    c.set_bits(c.ops[0], [*c.bits(c.ops[2], half), *c.bits(c.ops[1], half)])


@rule(*(f"k{name}{size}" for name, size in product(("ortest", "test"), "bwdq")))
def test(c: Context) -> None:
    """Zero: no bit is set (of the or, of the and); carry: all are (of the or), or none of the second without the first."""
    pairs = list(zip(c.bits(c.ops[0], _count(c)), c.bits(c.ops[1], _count(c)), strict=True))
    if c.name.startswith("kortest"):
        either = [build("or", "i1", a, b) for a, b in pairs]
        c.set_flags("bits", _all(either), negate(_some(either)), FALSE, FALSE, FALSE)
        return
    both = [build("and", "i1", a, b) for a, b in pairs]
    rest = [build("and", "i1", negate(a), b) for a, b in pairs]
    c.set_flags("bits", negate(_some(rest)), negate(_some(both)), FALSE, FALSE, FALSE)


def _some(bits: Sequence[Expr]) -> Expr:
    return _joined("or", bits)


def _all(bits: Sequence[Expr]) -> Expr:
    return _joined("and", bits)


def _joined(name: str, bits: Sequence[Expr]) -> Expr:
    total = bits[0]
    for bit in bits[1:]:
        total = build(name, "i1", total, bit)
    return total


@rule(*(f"pcmp{sign}{size}" for sign, size in product(("", "u"), "bwdq")))
def compare(c: Context) -> None:
    ty, size, number = _ELEMENT[c.name[-1]], c.vector_size(), c.immediate() % 8
    pairs = zip(c.elements(c.ops[1], ty, size), c.elements(c.ops[2], ty, size), strict=True)
    c.set_bits(c.ops[0], [integer_predicate(number, c.name[4] != "u", a, b) for a, b in pairs])


@rule(*(f"ptest{n}m{size}" for n, size in product(("", "n"), "bwdq")))
def test_elements(c: Context) -> None:
    ty, size = _ELEMENT[c.name[-1]], c.vector_size()
    name = "eq" if c.name[5] == "n" else "ne"
    pairs = zip(c.elements(c.ops[1], ty, size), c.elements(c.ops[2], ty, size), strict=True)
    c.set_bits(c.ops[0], [build(name, "i1", build("and", ty, a, b), Const(ty, 0)) for a, b in pairs])


@rule(*(f"pmovm2{size}" for size in "bwdq"))
def from_mask(c: Context) -> None:
    ty = _ELEMENT[c.name[-1]]
    bits = c.bits(c.ops[1], c.vector_size() * 8 // BITS[ty])
    c.set_packed(c.vector(c.ops[0]), [sext(ty, bit) for bit in bits])


@rule(*(f"pmov{size}2m" for size in "bwdq"))
def to_mask(c: Context) -> None:
    ty = _ELEMENT[c.name[4]]
    elements = c.elements(c.ops[1], ty, c.vector_size())
    c.set_bits(c.ops[0], [build("slt", "i1", element, Const(ty, 0)) for element in elements])


@rule("pbroadcastmb2q", "pbroadcastmw2d")
def broadcast_mask(c: Context) -> None:
    count, ty = (8, "i64") if c.name[-1] == "q" else (16, "i32")
    wide: Ty = INTEGER[BITS[ty] // 8]  # type: ignore[index]
    value = zext(wide, gathered(c.bits(c.ops[1], count)))
    c.set_packed(c.vector(c.ops[0]), [value] * (c.vector_size() * 8 // BITS[wide]))


_BLENDS: dict[str, Ty] = {"blendmps": "f32", "blendmpd": "f64", **{f"pblendm{k}": ty for k, ty in _ELEMENT.items()}}


@rule(*_BLENDS)
def blend(c: Context) -> None:
    """The second source where the mask is set, the first one (or zero) elsewhere."""
    ty, size = _BLENDS[c.name], c.vector_size()
    second = c.elements(c.ops[2], ty, size)
    if not c.insn.mask:
        c.set_packed(c.vector(c.ops[0]), second)
        return
    first = [Const(ty, 0)] * len(second) if c.insn.zeroing else c.elements(c.ops[1], ty, size)
    c.set_chosen(c.vector(c.ops[0]), [build("select", ty, c.permit(i), b, first[i]) for i, b in enumerate(second)])
