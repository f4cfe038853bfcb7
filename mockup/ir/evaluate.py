"""Value of every operation of :class:`layout_advise.mockup.ir.effects.Op` on concrete bit patterns.

Floating point is IEEE 754 as x86 does it with the default MXCSR (nearest even, no flush to zero, exceptions masked): a NaN
result is the first NaN operand made quiet, an invalid operation gives the negative default NaN.
"""

from __future__ import annotations

import ctypes
import math
import struct
from collections.abc import Callable
from fractions import Fraction

from layout_advise.mockup.ir.effects import BITS, Ty, mask, sign_bit

Values = tuple[int, ...]
_FLOATS = ("f32", "f64")
_FRACTION_BITS = {"f32": 23, "f64": 52}


def signed(value: int, bits: int) -> int:
    """``value`` (unsigned pattern of ``bits`` bits) read as two's complement."""
    return value - (1 << bits) if value >> (bits - 1) else value


def to_float(value: int, ty: Ty) -> float:
    """The number that the bit pattern stands for (NaN payloads are lost)."""
    number: float
    (number,) = struct.unpack("<f" if ty == "f32" else "<d", value.to_bytes(BITS[ty] // 8, "little"))
    return number


def from_float(number: float, ty: Ty) -> int:
    """Bit pattern of ``number`` rounded once to ``ty``."""
    if math.isnan(number):
        return default_nan(ty)
    if ty == "f32":
        return int.from_bytes(bytes(ctypes.c_float(number)), "little")  # the C cast rounds, and overflows to infinity
    return int.from_bytes(struct.pack("<d", number), "little")


def default_nan(ty: Ty) -> int:
    """x86's "real indefinite"."""
    return 0xFFC00000 if ty == "f32" else 0xFFF8000000000000


def is_nan(value: int, ty: Ty) -> bool:
    """Returns whether the pattern is a NaN."""
    fraction = _FRACTION_BITS[ty]
    magnitude = value & (sign_bit(ty) - 1)
    infinity = ((1 << (BITS[ty] - 1 - fraction)) - 1) << fraction
    return magnitude > infinity


def quiet(value: int, ty: Ty) -> int:
    """The NaN with its quiet bit set."""
    return value | (1 << (_FRACTION_BITS[ty] - 1))


def evaluate(name: str, ty: Ty, args: Values, types: tuple[Ty, ...]) -> int:
    """The pattern of ``name(args)`` of type ``ty``, the arguments being of ``types``.

    Raises KeyError for names that have no value of their own (``flags.*``, ``cond.*``, ``undefined``), ZeroDivisionError for
    a division that traps.
    """
    if name in _CONVERSIONS:
        return _CONVERSIONS[name](ty, args, types)
    if name in _COMPARES:
        return int(_COMPARES[name](args, types[0]))
    if name in _FLOAT:
        return _FLOAT[name](ty, args)
    bits = BITS[ty]
    return _INTEGER[name](args, bits) & ((1 << bits) - 1)


def _divide(a: int, b: int) -> int:
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def _sdiv(v: Values, n: int) -> int:
    return _divide(signed(v[0], n), signed(v[1], n))


def _srem(v: Values, n: int) -> int:
    a, b = signed(v[0], n), signed(v[1], n)
    return a - b * _divide(a, b)


def _wide(v: Values, n: int) -> int:
    return v[0] << n | v[1]


def _wide_signed(v: Values, n: int, remainder: bool) -> int:
    a, b = signed(_wide(v, n), 2 * n), signed(v[2], n)
    quotient = _divide(a, b)
    return a - b * quotient if remainder else quotient


def _trailing(v: Values, n: int) -> int:
    return n if v[0] == 0 else (v[0] & -v[0]).bit_length() - 1


def _picked(v: Values) -> int:
    source = v[0].to_bytes(8, "little") + v[1].to_bytes(8, "little")
    return int.from_bytes((0 if m & 128 else source[m & 15] for m in v[2].to_bytes(8, "little")), "little")


_INTEGER: dict[str, Callable[[Values, int], int]] = {
    "add": lambda v, n: v[0] + v[1],
    "sub": lambda v, n: v[0] - v[1],
    "mul": lambda v, n: v[0] * v[1],
    "and": lambda v, n: v[0] & v[1],
    "or": lambda v, n: v[0] | v[1],
    "xor": lambda v, n: v[0] ^ v[1],
    "shl": lambda v, n: v[0] << v[1] if v[1] < n else 0,
    "lshr": lambda v, n: v[0] >> v[1],
    "ashr": lambda v, n: signed(v[0], n) >> min(v[1], n - 1),
    "rotl": lambda v, n: v[0] << (v[1] % n) | v[0] >> (n - v[1] % n),
    "neg": lambda v, n: -v[0],
    "not": lambda v, n: ~v[0],
    "umulhi": lambda v, n: v[0] * v[1] >> n,
    "smulhi": lambda v, n: signed(v[0], n) * signed(v[1], n) >> n,
    "udiv": lambda v, n: v[0] // v[1],
    "urem": lambda v, n: v[0] % v[1],
    "sdiv": _sdiv,
    "srem": _srem,
    "wide.udiv": lambda v, n: _wide(v, n) // v[2],
    "wide.urem": lambda v, n: _wide(v, n) % v[2],
    "wide.sdiv": lambda v, n: _wide_signed(v, n, False),
    "wide.srem": lambda v, n: _wide_signed(v, n, True),
    "popcnt": lambda v, n: v[0].bit_count(),
    "lzcnt": lambda v, n: n - v[0].bit_length(),
    "tzcnt": _trailing,
    "bswap": lambda v, n: int.from_bytes(v[0].to_bytes(n // 8, "little"), "big"),
    "pickbytes": lambda v, n: _picked(v),
    "umin": lambda v, n: min(v),
    "umax": lambda v, n: max(v),
    "smin": lambda v, n: min(v, key=lambda x: signed(x, n)),
    "smax": lambda v, n: max(v, key=lambda x: signed(x, n)),
    "select": lambda v, n: v[1] if v[0] else v[2],
}


def _ordered(v: Values, ty: Ty) -> bool:
    return not is_nan(v[0], ty) and not is_nan(v[1], ty)


_COMPARES: dict[str, Callable[[Values, Ty], bool]] = {
    "eq": lambda v, t: v[0] == v[1],
    "ne": lambda v, t: v[0] != v[1],
    "slt": lambda v, t: signed(v[0], BITS[t]) < signed(v[1], BITS[t]),
    "sle": lambda v, t: signed(v[0], BITS[t]) <= signed(v[1], BITS[t]),
    "ult": lambda v, t: v[0] < v[1],
    "ule": lambda v, t: v[0] <= v[1],
    "foeq": lambda v, t: _ordered(v, t) and to_float(v[0], t) == to_float(v[1], t),
    "folt": lambda v, t: _ordered(v, t) and to_float(v[0], t) < to_float(v[1], t),
    "fole": lambda v, t: _ordered(v, t) and to_float(v[0], t) <= to_float(v[1], t),
    "funo": lambda v, t: not _ordered(v, t),
}


def _arithmetic(compute: Callable[[float, float], float]) -> Callable[[Ty, Values], int]:
    def run(ty: Ty, v: Values) -> int:
        for value in v:
            if is_nan(value, ty):
                return quiet(value, ty)
        # For f32 the double result is rounded a second time: harmless, 53 >= 2 * 24 + 2 (Figueroa 1995).
        return from_float(compute(to_float(v[0], ty), to_float(v[1], ty)), ty)

    return run


def _quotient(a: float, b: float) -> float:
    if b != 0:
        return a / b
    if a == 0 or math.isnan(a):
        return math.nan
    return math.copysign(math.inf, a) * math.copysign(1.0, b)


def _sqrt(ty: Ty, v: Values) -> int:
    if is_nan(v[0], ty):
        return quiet(v[0], ty)
    number = to_float(v[0], ty)
    return default_nan(ty) if number < 0 else from_float(math.sqrt(number), ty)


def _fma(ty: Ty, v: Values) -> int:
    for value in v:
        if is_nan(value, ty):
            return quiet(value, ty)
    a, b, c = (to_float(value, ty) for value in v)
    if not all(map(math.isfinite, (a, b, c))):
        if math.isinf(a) or math.isinf(b):
            product = math.nan if a == 0 or b == 0 else a * b
            return from_float(product + c, ty)
        return v[2]
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if exact == 0:
        sign = math.copysign(1.0, a) * math.copysign(1.0, b)
        zero = a == 0 or b == 0
        return from_float(math.copysign(0.0, c) if zero and c == 0 and sign == math.copysign(1.0, c) else 0.0, ty)
    return from_float(_round(exact, ty), ty)


def _round(exact: Fraction, ty: Ty) -> float:
    """``exact`` as a double: nearest for f64; for f32 rounded to odd, so that a second rounding to f32 is right."""
    try:
        near = float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf
    if ty == "f64" or Fraction(near) == exact or from_float(near, "f64") & 1:
        return near
    return math.nextafter(near, math.inf if Fraction(near) < exact else -math.inf)


def _integral(compute: Callable[[float], int]) -> Callable[[Ty, Values], int]:
    def run(ty: Ty, v: Values) -> int:
        if is_nan(v[0], ty):
            return quiet(v[0], ty)
        number = to_float(v[0], ty)
        if math.isinf(number) or abs(number) >= 2.0**52:
            return v[0]
        return from_float(math.copysign(float(compute(number)), number), ty)

    return run


_FLOAT: dict[str, Callable[[Ty, Values], int]] = {
    "fadd": _arithmetic(lambda a, b: a + b),
    "fsub": _arithmetic(lambda a, b: a - b),
    "fmul": _arithmetic(lambda a, b: a * b),
    "fdiv": _arithmetic(_quotient),
    "fsqrt": _sqrt,
    "fma": _fma,
    "fneg": lambda ty, v: v[0] ^ sign_bit(ty),
    "fabs": lambda ty, v: v[0] & ~sign_bit(ty),
    "fmin": lambda ty, v: v[0] if _COMPARES["folt"](v, ty) else v[1],
    "fmax": lambda ty, v: v[0] if _COMPARES["folt"](v[::-1], ty) else v[1],
    "floor": _integral(math.floor),
    "ceil": _integral(math.ceil),
    "ftrunc": _integral(math.trunc),
    "rint": _integral(round),
}


def _resize(ty: Ty, v: Values, types: tuple[Ty, ...]) -> int:
    source = types[0]
    if not is_nan(v[0], source):
        return from_float(to_float(v[0], source), ty)
    shift = _FRACTION_BITS["f64"] - _FRACTION_BITS["f32"]
    sign = v[0] >> (BITS[source] - 1) << (BITS[ty] - 1)
    fraction = v[0] & ((1 << _FRACTION_BITS[source]) - 1)
    fraction = fraction << shift if ty == "f64" else fraction >> shift
    return sign | default_nan(ty) & ~sign_bit(ty) | fraction


def _to_integer(compute: Callable[[float], int]) -> Callable[[Ty, Values, tuple[Ty, ...]], int]:
    def run(ty: Ty, v: Values, types: tuple[Ty, ...]) -> int:
        bits = BITS[ty]
        number = to_float(v[0], types[0])
        if math.isfinite(number) and -(1 << (bits - 1)) <= (whole := compute(number)) < 1 << (bits - 1):
            return whole & ((1 << bits) - 1)
        return 1 << (bits - 1)

    return run


def _to_unsigned(compute: Callable[[float], int]) -> Callable[[Ty, Values, tuple[Ty, ...]], int]:
    def run(ty: Ty, v: Values, types: tuple[Ty, ...]) -> int:
        most = mask(ty)
        number = to_float(v[0], types[0])
        return whole if math.isfinite(number) and 0 <= (whole := compute(number)) <= most else most

    return run


def _integer_to_float(number: int, ty: Ty) -> int:
    return from_float(_round(Fraction(number), ty), ty)


_CONVERSIONS: dict[str, Callable[[Ty, Values, tuple[Ty, ...]], int]] = {
    "zext": lambda ty, v, t: v[0],
    "sext": lambda ty, v, t: signed(v[0], BITS[t[0]]) & mask(ty),
    "trunc": lambda ty, v, t: v[0] & mask(ty),
    "bitcast": lambda ty, v, t: v[0],
    "lo32": lambda ty, v, t: v[0] & 0xFFFFFFFF,
    "hi32": lambda ty, v, t: v[0] >> 32,
    "hi16": lambda ty, v, t: v[0] >> 16,
    "hi8": lambda ty, v, t: v[0] >> 8,
    "pair": lambda ty, v, t: v[0] | v[1] << BITS[t[0]],
    "fpext": _resize,
    "fptrunc": _resize,
    "sitofp": lambda ty, v, t: _integer_to_float(signed(v[0], BITS[t[0]]), ty),
    "uitofp": lambda ty, v, t: _integer_to_float(v[0], ty),
    "fptosi": _to_integer(math.trunc),
    "fptosi.rint": _to_integer(round),
    "fptoui": _to_unsigned(math.trunc),
    "fptoui.rint": _to_unsigned(round),
}
