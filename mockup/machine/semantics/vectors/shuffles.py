"""Permutations of vector elements: on lane expressions they are renaming."""

from __future__ import annotations

from layout_advise.mockup.ir.effects import BITS, Const, Expr, Ty
from layout_advise.mockup.ir.expressions import build
from layout_advise.mockup.machine.disassembly import Immediate
from layout_advise.mockup.machine.semantics.context import Context, rule
from layout_advise.mockup.machine.semantics.elements import ZERO

_UNPACK: dict[str, Ty] = {
    "unpcklps": "f32", "unpckhps": "f32", "unpcklpd": "f64", "unpckhpd": "f64", "punpcklbw": "i8", "punpckhbw": "i8",
    "punpcklwd": "i16", "punpckhwd": "i16", "punpckldq": "i32", "punpckhdq": "i32", "punpcklqdq": "i64", "punpckhqdq": "i64",
}  # fmt: skip


def _per(ty: Ty) -> int:
    """Elements in 16 bytes: most shuffles work within these."""
    return 128 // BITS[ty]


@rule(*_UNPACK)
def unpack(c: Context) -> None:
    ty = _UNPACK[c.name]
    dest, first, second = c.sources()
    size = c.vector_size()
    a, b = c.elements(first, ty, size), c.elements(second, ty, size)
    per = _per(ty)
    start = per // 2 if "ckh" in c.name else 0
    result = [
        source[at + start + i] for at in range(0, len(a), per) for i in range(per // 2) for source in (a, b)
    ]  # fmt: skip
    c.set_packed(dest, result)


@rule("shufps")
def shufps(c: Context) -> None:
    imm = c.immediate()
    dest, first, second = c.sources()
    size = c.vector_size()
    a, b = c.elements(first, "f32", size), c.elements(second, "f32", size)
    result = [(a if i % 4 < 2 else b)[i // 4 * 4 + (imm >> 2 * (i % 4) & 3)] for i in range(len(a))]
    c.set_packed(dest, result)


@rule("shufpd")
def shufpd(c: Context) -> None:
    imm = c.immediate()
    dest, first, second = c.sources()
    size = c.vector_size()
    a, b = c.elements(first, "f64", size), c.elements(second, "f64", size)
    c.set_packed(dest, [(b if i % 2 else a)[i // 2 * 2 + (imm >> i & 1)] for i in range(len(a))])


@rule("pshufd", "permilps")
def shuffle_singles(c: Context) -> None:
    ty: Ty = "i32" if c.name == "pshufd" else "f32"
    dest = c.vector(c.ops[0])
    size = c.vector_size()
    a = c.elements(c.ops[1], ty, size)
    if isinstance(c.ops[2], Immediate):
        imm = c.immediate()
        c.set_packed(dest, [a[i // 4 * 4 + (imm >> 2 * (i % 4) & 3)] for i in range(len(a))])
        return
    control = c.elements(c.ops[2], "i32", size)
    c.set_packed(dest, [choose(a[i // 4 * 4 : i // 4 * 4 + 4], control[i]) for i in range(len(a))])


@rule("permilpd")
def permilpd(c: Context) -> None:
    dest = c.vector(c.ops[0])
    size = c.vector_size()
    a = c.elements(c.ops[1], "f64", size)
    if isinstance(c.ops[2], Immediate):
        imm = c.immediate()
        c.set_packed(dest, [a[i // 2 * 2 + (imm >> i & 1)] for i in range(len(a))])
        return
    control = [build("lshr", "i64", x, Const("i64", 1)) for x in c.lanes(c.ops[2], size)]  # bit 1 selects
    c.set_packed(dest, [choose(a[i // 2 * 2 : i // 2 * 2 + 2], control[i]) for i in range(len(a))])


def choose(values: list[Expr], index: Expr) -> Expr:
    """``values[index mod len]`` for a power-of-two length, as a tree of selects over the index bits."""
    if len(values) == 1:
        return values[0]
    half = len(values) // 2
    bit = build("and", index.ty, index, Const(index.ty, half))
    taken = build("ne", "i1", bit, Const(index.ty, 0))
    return build("select", values[0].ty, taken, choose(values[half:], index), choose(values[:half], index))


@rule("permps", "permd")
def permute_singles(c: Context) -> None:
    ty: Ty = "f32" if c.name == "permps" else "i32"
    size = c.vector_size()
    control = c.elements(c.ops[1], "i32", size)
    values = c.elements(c.ops[2], ty, size)
    c.set_packed(c.vector(c.ops[0]), [choose(values, at) for at in control])


@rule("permpd", "permq")
def permute_doubles(c: Context) -> None:
    ty: Ty = "f64" if c.name == "permpd" else "i64"
    size = c.vector_size()
    if not isinstance(c.ops[2], Immediate):
        values = c.elements(c.ops[2], ty, size)
        c.set_packed(c.vector(c.ops[0]), [choose(values, at) for at in c.elements(c.ops[1], "i64", size)])
        return
    imm = c.immediate()
    values = c.elements(c.ops[1], ty, size)
    c.set_packed(c.vector(c.ops[0]), [values[i // 4 * 4 + (imm >> 2 * (i % 4) & 3)] for i in range(len(values))])


@rule("perm2f128", "perm2i128")
def permute_halves(c: Context) -> None:
    imm = c.immediate()
    a, b = c.lanes(c.ops[1], 32), c.lanes(c.ops[2], 32)
    halves: list[list[Expr]] = [a[:2], a[2:], b[:2], b[2:]]
    result: list[Expr] = []
    for control in (imm & 15, imm >> 4):
        result += [ZERO, ZERO] if control & 8 else halves[control & 3]
    c.set_packed(c.vector(c.ops[0]), result)


@rule("pshuflw", "pshufhw")
def shuffle_words(c: Context) -> None:
    imm = c.immediate()
    size = c.vector_size()
    words = c.elements(c.ops[1], "i16", size)
    start = 4 if c.name == "pshufhw" else 0
    result = list(words)
    for at in range(0, len(words), 8):
        for i in range(4):
            result[at + start + i] = words[at + start + (imm >> 2 * i & 3)]
    c.set_packed(c.vector(c.ops[0]), result)


def _grain(count: int) -> Ty:
    """The widest element that a shift by ``count`` bytes does not cut."""
    return "i64" if count % 8 == 0 else "i32" if count % 4 == 0 else "i16" if count % 2 == 0 else "i8"


@rule("palignr")
def palignr(c: Context) -> None:
    count = c.immediate()
    ty = _grain(count)
    dest, first, second = c.sources()
    size = c.vector_size()
    high, low = c.elements(first, ty, size), c.elements(second, ty, size)
    per, step = _per(ty), count * 8 // BITS[ty]
    result: list[Expr] = []
    for at in range(0, len(high), per):
        both = [*low[at : at + per], *high[at : at + per]] + [Const(ty, 0)] * per
        result += [both[step + i] if step + i < 3 * per else Const(ty, 0) for i in range(per)]
    c.set_packed(dest, result)


@rule("pslldq", "psrldq")
def shift_bytes(c: Context) -> None:
    count = min(c.immediate(), 16)
    ty = _grain(count)
    dest, source = c.vector(c.ops[0]), c.ops[-2]
    values = c.elements(source, ty, c.vector_size())
    per, step = _per(ty), count * 8 // BITS[ty]
    zeros: list[Expr] = [Const(ty, 0)] * step
    result: list[Expr] = []
    for at in range(0, len(values), per):
        here = values[at : at + per]
        result += (zeros + here)[:per] if c.name == "pslldq" else (here + zeros)[step : step + per]
    c.set_packed(dest, result)


@rule("pshufb")
def shuffle_bytes(c: Context) -> None:
    dest, source, mask = c.sources()
    size = c.vector_size()
    values, masks = c.lanes(source, size), c.lanes(mask, size)
    result: list[Expr] = []
    for at in range(0, len(values), 2):  # each 16 bytes by themselves
        low, high = values[at : at + 2]
        result += [build("pickbytes", "i64", low, high, one) for one in masks[at : at + 2]]
    c.set_packed(dest, result)
