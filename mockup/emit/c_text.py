"""Types, constants and operations of the lifted hotspot as C text.

Integers up to 32 bits are unsigned in C (their arithmetic wraps, and stays so), 64-bit ones signed: a counter whose
overflow is undefined is what compilers optimise best (28 % on one loop).
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence

from layout_advise.errors import LayoutAdviseError
from layout_advise.layoutalgebra.derive.structure import Structure
from layout_advise.mockup.evidence.binding import grid_range
from layout_advise.mockup.ir.effects import BITS, Ty
from layout_advise.mockup.ir.lifted import Imm

CTYPE: dict[str, str] = {
    "i1": "int",
    "i8": "uint8_t",
    "i16": "uint16_t",
    "i32": "uint32_t",
    "i64": "int64_t",
    "f32": "float",
    "f64": "double",
    "f80": "long double",
}
_Form = Callable[[Ty, list[str], Ty], str]
SIGNED = {"i1": "int", "i8": "int8_t", "i16": "int16_t", "i32": "int32_t", "i64": "int64_t"}
WIDE = {"i1": "uint32_t", "i8": "uint32_t", "i16": "uint32_t", "i32": "uint32_t", "i64": "uint64_t"}

_WRAPPING = {"add": "+", "sub": "-", "mul": "*", "and": "&", "or": "|", "xor": "^", "shl": "<<"}
_FLOAT = {"fadd": "+", "fsub": "-", "fmul": "*", "fdiv": "/"}
_COMPARE = {
    "eq": "==",
    "ne": "!=",
    "ult": "<",
    "ule": "<=",
    "slt": "<",
    "sle": "<=",
    "foeq": "==",
    "folt": "<",
    "fole": "<=",
}
_CHOICE = {"umin": "<", "smin": "<", "fmin": "<", "umax": ">", "smax": ">", "fmax": ">"}
_ROUND = {"fsqrt": "sqrt", "fabs": "fabs", "floor": "floor", "ceil": "ceil", "ftrunc": "trunc", "rint": "rint", "fma": "fma"}


def integer(value: int, ty: Ty) -> str:
    """An integer constant from its bit pattern."""
    if ty != "i64":
        return str(value) if value < 1 << 31 else f"{value:#x}u"
    signed = value - (1 << 64) if value >> 63 else value
    if signed == -(1 << 63):
        return "INT64_MIN"
    return str(signed) if abs(signed) < 1 << 31 else f"INT64_C({hex(signed) if abs(signed) > 1 << 40 else signed})"


def floating(value: int, ty: Ty) -> str:
    """A floating constant from its bit pattern; shortest decimal that reads back to the same bits."""
    if ty == "f64":
        number = struct.unpack("<d", value.to_bytes(8, "little"))[0]
        if math.isfinite(number):
            return repr(number)
        return f"la_as_f64(INT64_C({value - (1 << 64) if value >> 63 else value}))"
    if ty == "f80":
        return _long_double(value)
    number = struct.unpack("<f", value.to_bytes(4, "little"))[0]
    if not math.isfinite(number):
        return f"la_as_f32({value:#x}u)"
    text = next(t for t in (f"{number:.{digits}g}" for digits in range(1, 10)) if _reads_as(t, number))
    return f"{text}f" if any(c in text for c in ".e") else f"{text}.0f"


def _long_double(value: int) -> str:
    """A finite number of 80 bits: sign, 15 bits of exponent, 64 of the fraction with the leading one."""
    sign, exponent, fraction = value >> 79, value >> 64 & 0x7FFF, value & (1 << 64) - 1
    if exponent == 0x7FFF:
        raise LayoutAdviseError("cannot write the mock-up", "no C for an infinite constant of 80 bits")
    return f"{'-' if sign else ''}0x{fraction:x}p{max(exponent, 1) - 16383 - 63}L"


def _reads_as(text: str, number: float) -> bool:
    """Returns whether ``text`` is the float ``number``: the greatest float, shortened, may lie beyond it (3.403e+38)."""
    try:
        return struct.pack("<f", float(text)) == struct.pack("<f", number)
    except OverflowError:
        return False


def constant(imm: Imm) -> str:
    """An immediate."""
    return floating(imm.value, imm.ty) if imm.ty[0] == "f" else integer(imm.value, imm.ty)


def operation(name: str, ty: Ty, args: Sequence[str], types: Sequence[Ty]) -> str:
    """``name(args)`` as a C expression of type ``CTYPE[ty]``; ``types`` are the arguments' types.

    Raises LayoutAdviseError for an operation that no C is known for (never a guess).
    """
    arg = args[0]
    source = types[0]
    if name in _FLOAT:
        text = f"{arg} {_FLOAT[name]} {args[1]}"
        return f"LA_PRODUCT({text})" if name == "fmul" else text
    if name in _WRAPPING:
        return _wrapping(_WRAPPING[name], ty, args)
    if name in _COMPARE:
        return _compare(name, args, source)
    if name in _CHOICE:
        left, right = (_signed(a, ty) if name[0] == "s" else _unsigned(a, ty) for a in args)
        return f"{left} {_CHOICE[name]} {right} ? {arg} : {args[1]}"
    if name in _ROUND:
        return f"__builtin_{_ROUND[name]}{_suffix(ty)}({', '.join(args)})"
    if name == "select":
        return f"{arg} ? {args[1]} : {args[2]}"
    if name.startswith(("fmaddsub.", "fmsubadd.")):
        return _fmaddsub(name, ty, args)
    if name in _SIMPLE:
        return _SIMPLE[name](ty, list(args), source)
    raise LayoutAdviseError("cannot write the mock-up", f"no C for the operation {name}")


def _fmaddsub(name: str, ty: Ty, args: Sequence[str]) -> str:
    """One lane of what :mod:`layout_advise.mockup.emit.packs.fmaddsub` puts together; the compiler computes all of them
    once."""
    operation_, lanes, lane = name.split(".")
    size = int(lanes)
    vectors = (f"(la_{ty}x{size}){{{', '.join(args[k : k + size])}}}" for k in range(0, 3 * size, size))
    return f"la_{operation_}_{ty}x{size}({', '.join(vectors)})[{lane}]"


def _wrapping(sign: str, ty: Ty, args: Sequence[str]) -> str:
    if ty in ("i32", "i1"):
        return f"{args[0]} {sign} {args[1]}"
    wide = WIDE[ty]
    return f"({CTYPE[ty]})(({wide}){args[0]} {sign} ({wide}){args[1]})"


def _compare(name: str, args: Sequence[str], ty: Ty) -> str:
    left, right = args
    if name[0] == "s":
        left, right = _signed(left, ty), _signed(right, ty)
    elif name[0] == "u":
        left, right = _unsigned(left, ty), _unsigned(right, ty)
    return f"{left} {_COMPARE[name]} {right}"


def _signed(text: str, ty: Ty) -> str:
    return f"({SIGNED[ty]}){text}" if ty in ("i8", "i16", "i32") else text


def _unsigned(text: str, ty: Ty) -> str:
    return f"(uint64_t){text}" if ty == "i64" else text


def _zext(ty: Ty, args: list[str], source: Ty) -> str:
    return f"({CTYPE[ty]}){_unsigned(args[0], source)}"


def _sext(ty: Ty, args: list[str], source: Ty) -> str:
    if source == "i1":
        return f"({CTYPE[ty]})-({SIGNED[ty]}){args[0]}"
    return f"({CTYPE[ty]})({SIGNED[ty]}){_signed(args[0], source)}"


def _trunc(ty: Ty, args: list[str], source: Ty) -> str:
    return f"(int)({args[0]} & 1)" if ty == "i1" else f"({CTYPE[ty]}){args[0]}"


def _bitcast(ty: Ty, args: list[str], source: Ty) -> str:
    return args[0] if ty == source else f"la_as_{ty}({args[0]})"


def _suffix(ty: Ty) -> str:
    """Of functions of the mathematical library for this type."""
    return {"f32": "f", "f80": "l"}.get(ty, "")


def _signed_binary(sign: str) -> _Form:
    return lambda ty, args, source: f"({CTYPE[ty]})({_signed(args[0], ty)} {sign} {_signed(args[1], ty)})"


def _unsigned_binary(sign: str) -> _Form:
    return lambda ty, args, source: f"({CTYPE[ty]})({_unsigned(args[0], ty)} {sign} {_unsigned(args[1], ty)})"


def _high(sign: str) -> _Form:
    def text(ty: Ty, args: list[str], source: Ty) -> str:
        cast = "(int64_t)" if sign == "s" else "(uint64_t)"
        left, right = (cast + (_signed(a, ty) if sign == "s" else a) for a in args)
        wide = {"i64": "__int128" if sign == "s" else "unsigned __int128"}.get(ty, "int64_t" if sign == "s" else "uint64_t")
        return f"({CTYPE[ty]})((({wide}){left} * ({wide}){right}) >> {BITS[ty]})"

    return text


def _count(name: str) -> _Form:
    def text(ty: Ty, args: list[str], source: Ty) -> str:
        return f"({CTYPE[ty]})la_{name}({_unsigned(args[0], ty)}, {BITS[ty]})"

    return text


def _rotl(ty: Ty, args: list[str], source: Ty) -> str:
    bits, value = BITS[ty], f"({WIDE[ty]}){_unsigned(args[0], ty)}"
    return f"({CTYPE[ty]})({value} << ({args[1]} & {bits - 1}) | {value} >> (-{args[1]} & {bits - 1}))"


_WHOLE: dict[Ty, str] = {"i64": "uint64_t", "i32": "uint32_t", "i16": "uint32_t"}
"""The type in which two halves are put together."""

_SIMPLE: dict[str, _Form] = {
    "lshr": lambda ty, a, source: f"({CTYPE[ty]})({_unsigned(a[0], ty)} >> {a[1]})",
    "ashr": lambda ty, a, source: f"({CTYPE[ty]})({_signed(a[0], ty)} >> {a[1]})",
    "udiv": _unsigned_binary("/"),
    "urem": _unsigned_binary("%"),
    "sdiv": _signed_binary("/"),
    "srem": _signed_binary("%"),
    "umulhi": _high("u"),
    "smulhi": _high("s"),
    "popcnt": _count("popcnt"),
    "lzcnt": _count("lzcnt"),
    "tzcnt": _count("tzcnt"),
    "rotl": _rotl,
    "neg": lambda ty, a, source: f"({CTYPE[ty]})(0 - ({WIDE[ty]}){a[0]})",
    "not": lambda ty, a, source: f"!{a[0]}" if ty == "i1" else f"({CTYPE[ty]})~{a[0]}",
    "bswap": lambda ty, a, source: f"({CTYPE[ty]})__builtin_bswap{BITS[ty]}({a[0]})",
    "pickbytes": lambda ty, a, source: f"la_pick_bytes({', '.join(a)})",
    "zext": _zext,
    "sext": _sext,
    "trunc": _trunc,
    "bitcast": _bitcast,
    "lo32": lambda ty, a, source: f"(uint32_t){a[0]}",
    "hi32": lambda ty, a, source: f"(uint32_t)((uint64_t){a[0]} >> 32)",
    "hi16": lambda ty, a, source: f"(uint16_t)({a[0]} >> 16)",
    "hi8": lambda ty, a, source: f"(uint8_t)({a[0]} >> 8)",
    "pair": lambda ty, a, source: f"({CTYPE[ty]})(({_WHOLE[ty]}){a[1]} << {BITS[source]} | {a[0]})",
    "funo": lambda ty, a, source: f"__builtin_isunordered({a[0]}, {a[1]})",
    "fneg": lambda ty, a, source: f"-{a[0]}",
    "fpext": lambda ty, a, source: f"({CTYPE[ty]}){a[0]}",
    "fptrunc": lambda ty, a, source: f"({CTYPE[ty]}){a[0]}",
    "sitofp": lambda ty, a, source: f"({CTYPE[ty]}){_signed(a[0], source)}",
    "uitofp": lambda ty, a, source: f"({CTYPE[ty]}){_unsigned(a[0], source)}",
    # Out of range the machine's own instruction gives the integer-indefinite value, and the compiler emits that very one;
    # the helpers keep it from folding a cast that C leaves undefined.
    "fptosi": lambda ty, a, source: f"({CTYPE[ty]})la_{source}_to_{ty}({a[0]})",
    "fptosi.rint": lambda ty, a, source: f"({CTYPE[ty]})la_{source}_rint_{ty}({a[0]})",
    "fptoui": lambda ty, a, source: f"({CTYPE[ty]})la_{source}_to_u{ty[1:]}({a[0]})",
    "fptoui.rint": lambda ty, a, source: f"({CTYPE[ty]})la_{source}_to_u{ty[1:]}(__builtin_rint{_suffix(source)}({a[0]}))",
}


def among(pool: Structure) -> str:
    """The argument that names the blocks of ``pool``."""
    return f"&pool_{pool.id}"


def within_text(address: str, structure: Structure) -> str:
    """Whether an old address is one of the structure's elements."""
    if structure.blocks:
        return f"(la_distance({among(structure)}, {structure.element_bytes}, {address}) >= 0)"
    low, end = grid_range(structure)
    return f"LA_WITHIN({address}, {integer(low, 'i64')}, {end - low})"


def link_text(way: str, text: str, led: Structure, step: int, first: str = "1") -> str:
    """A pointer to an element of ``led`` as its code (``way`` "encode"), or the other way round ("decode"); the code of the
    first element is ``first``, and those of neighbours are ``step`` apart."""
    (dim,) = led.dims
    if led.blocks:
        return f"la_{way}_among({text}, {among(led)}, {dim.stride}, {dim.count}, {step}, {first})"
    return f"la_{way}({text}, {integer(led.base, 'i64')}, {dim.stride}, {dim.count}, {step}, {first})"
