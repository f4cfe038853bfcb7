"""AVX-512: operations on elements that earlier extensions have no like of."""

from __future__ import annotations

from itertools import product

from layout_advise.mockup.ir.effects import BITS, Const, Expr, Ty
from layout_advise.mockup.ir.expressions import build, const, trunc
from layout_advise.mockup.machine.disassembly import Immediate, MemoryOperand
from layout_advise.mockup.machine.semantics.context import Context, rule
from layout_advise.mockup.machine.semantics.element_types import DOWN

_ELEMENT: dict[str, Ty] = {"b": "i8", "w": "i16", "d": "i32", "q": "i64"}


@rule(*DOWN)
def narrow(c: Context) -> None:
    """Each element cut, or clamped, to fewer bits."""
    wide, ty = _ELEMENT[c.name[-2]], _ELEMENT[c.name[-1]]
    kind = c.name[4:-2]
    values = c.elements(c.ops[1], wide, c.vector_size())
    result = [trunc(ty, _clamped(value, kind, BITS[ty])) for value in values]
    if isinstance(c.ops[0], MemoryOperand):
        c.store_elements(c.ops[0], result)
        c.mark(len(result) * BITS[ty] // 8)
        return
    count = len(result)
    c.set_packed(c.vector(c.ops[0]), [*result, *[Const(ty, 0)] * (128 // BITS[ty] - count)], count)


def _clamped(value: Expr, kind: str, bits: int) -> Expr:
    """``s``: within the signed range of so many bits; ``us``: an unsigned number, within theirs."""
    ty = value.ty
    if kind == "us":
        return build("umin", ty, value, Const(ty, (1 << bits) - 1))
    if kind == "s":
        raised = build("smax", ty, value, const(ty, -(1 << (bits - 1))))
        return build("smin", ty, raised, Const(ty, (1 << (bits - 1)) - 1))
    return value


@rule(*(f"pro{way}{each}{size}" for way, each, size in product("lr", ("", "v"), "dq")))
def rotate(c: Context) -> None:
    ty, size = _ELEMENT[c.name[-1]], c.vector_size()
    values, by = c.elements(c.ops[1], ty, size), c.ops[2]
    same: list[Expr] = [Const(ty, c.immediate() if isinstance(by, Immediate) else 0)] * len(values)
    counts = same if isinstance(by, Immediate) else c.elements(by, ty, size)
    if c.name[3] == "r":
        counts = [build("neg", ty, count) for count in counts]
    most = Const(ty, BITS[ty] - 1)
    pairs = zip(values, counts, strict=True)
    c.set_packed(c.vector(c.ops[0]), [build("rotl", ty, v, build("and", ty, n, most)) for v, n in pairs])


@rule("plzcntd", "plzcntq")
def leading_zeros(c: Context) -> None:
    ty = _ELEMENT[c.name[-1]]
    c.set_packed(c.vector(c.ops[0]), [build("lzcnt", ty, value) for value in c.elements(c.ops[1], ty, c.vector_size())])


@rule("pternlogd", "pternlogq")
def ternary(c: Context) -> None:
    """Bit ``4 * a + 2 * b + c`` of the immediate, for each bit of the three operands."""
    size = c.vector_size()
    triples = zip(*(c.lanes(op, size) for op in c.ops[:3]), strict=True)
    c.set_packed(c.vector(c.ops[0]), [_table(c.immediate(), 8, operands) for operands in triples])


def _table(table: int, rows: int, operands: tuple[Expr, ...]) -> Expr:
    """A function of bits given by its ``rows`` values: split by the first operand, which chooses the upper half if set."""
    whole = (1 << rows) - 1
    if table in (0, whole):
        return const("i64", -1 if table else 0)
    half = rows // 2
    low, high = table & ((1 << half) - 1), table >> half
    if low == high:
        return _table(low, half, operands[1:])
    first, rest = operands[0], operands[1:]
    if low == high ^ ((1 << half) - 1):
        return build("xor", "i64", first, _table(low, half, rest))
    clear = build("not", "i64", first)
    set_part = build("and", "i64", first, _table(high, half, rest))
    if high == (1 << half) - 1:
        return build("or", "i64", first, _table(low, half, rest))
    if low == (1 << half) - 1:
        return build("or", "i64", clear, _table(high, half, rest))
    return build("or", "i64", set_part, build("and", "i64", clear, _table(low, half, rest)))
