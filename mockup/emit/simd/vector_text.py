"""Operations of the lifted hotspot on the lanes of several elements, as C text (``lanes.h``)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from layout_advise.mockup.ir.effects import BITS, Ty

VECTOR: dict[Ty, str] = {
    "i1": "la_mask", "i8": "la_vi8", "i16": "la_vi16", "i32": "la_vi32", "i64": "la_vi64",
    "f32": "la_vf32", "f64": "la_vf64",
}  # fmt: skip
_BINARY = {
    "add": "+", "sub": "-", "mul": "*", "and": "&", "or": "|", "xor": "^", "shl": "<<", "lshr": ">>",
    "fadd": "+", "fsub": "-", "fmul": "*", "fdiv": "/",
}  # fmt: skip
_COMPARE = {
    "eq": "==", "ne": "!=", "ult": "<", "ule": "<=", "slt": "<", "sle": "<=", "foeq": "==", "folt": "<", "fole": "<=",
}  # fmt: skip
_CHOICE = {"umin": "<", "smin": "<", "umax": ">", "smax": ">"}
_HELPER = {"fmin": "min", "fmax": "max", "fsqrt": "sqrt", "fma": "fma", "fabs": "abs"}
FAULTING = frozenset(("udiv", "urem", "sdiv", "srem"))
"""Operations that must not be done for an element that the original does not do them for."""


def operation(name: str, ty: Ty, args: Sequence[str], types: Sequence[Ty]) -> str | None:
    """``name(args)`` as an expression of type ``VECTOR[ty]``; None where it has to be done lane by lane."""
    source = types[0]
    if name in _BINARY:
        # no LA_PRODUCT: gcc cuts it into lanes where it is a vector's, and fuses only what it vectorises itself
        return f"{args[0]} {_BINARY[name]} {args[1]}"
    if name in _COMPARE:
        return _as_mask(f"{_as_signed(args[0], source, name)} {_COMPARE[name]} {_as_signed(args[1], source, name)}", source)
    if name in _CHOICE:
        left, right = (_as_signed(a, ty, name) for a in args)
        chosen = _as_mask(f"{left} {_CHOICE[name]} {right}", ty)
        return f"{_select(ty)}({chosen}, {args[0]}, {args[1]})"
    if name in _HELPER:
        count = 1 if name == "fabs" else 3
        filled = [*args, *(args[0],) * 3][:count]
        return f"la_{_HELPER[name]}_{ty}({', '.join(filled)})"
    form = _FORMS.get(name)
    return form(ty, list(args), source) if form is not None else None


def _select(ty: Ty) -> str:
    return f"la_select_{'mask' if ty == 'i1' else ty}"


def select(ty: Ty, mask: str, yes: str, no: str) -> str:
    """The lanes of ``yes`` where ``mask`` holds, of ``no`` elsewhere."""
    return f"{_select(ty)}({mask}, {yes}, {no})"


def _as_mask(text: str, ty: Ty) -> str:
    return f"la_as_mask({text})" if ty != "i1" else f"({text})"


def _as_signed(text: str, ty: Ty, name: str) -> str:
    return f"({_signed(ty)}){text}" if name[0] == "s" and ty != "i1" else text


def _signed(ty: Ty) -> str:
    return f"la_vs{BITS[ty]}"


def _convert(text: str, ty: Ty) -> str:
    return f"__builtin_convertvector({text}, {VECTOR[ty]})"


def _sext(ty: Ty, args: list[str], source: Ty) -> str:
    wide = args[0] if source == "i1" else f"({_signed(source)}){args[0]}"
    return f"({VECTOR[ty]})__builtin_convertvector({wide}, {_signed(ty)})"


def _zext(ty: Ty, args: list[str], source: Ty) -> str:
    return f"({_sext(ty, args, source)} & 1)" if source == "i1" else _convert(args[0], ty)


def _trunc(ty: Ty, args: list[str], source: Ty) -> str:
    return f"la_as_mask(({args[0]} & 1) != 0)" if ty == "i1" else _convert(args[0], ty)


def _from_integer(ty: Ty, args: list[str], source: Ty) -> str | None:
    return _convert(f"({_signed(source)}){args[0]}", ty) if source == "i32" else None


def _to_integer(ty: Ty, args: list[str], source: Ty) -> str | None:
    return f"({VECTOR[ty]}){_convert_signed(args[0], ty)}" if ty == "i32" else None


def _convert_signed(text: str, ty: Ty) -> str:
    return f"__builtin_convertvector({text}, {_signed(ty)})"


_FORMS: dict[str, Callable[[Ty, list[str], Ty], str | None]] = {
    "select": lambda ty, a, source: select(ty, a[0], a[1], a[2]),
    "ashr": lambda ty, a, source: f"({VECTOR[ty]})(({_signed(ty)}){a[0]} >> ({_signed(ty)}){a[1]})",
    "neg": lambda ty, a, source: f"-{a[0]}",
    "not": lambda ty, a, source: f"~{a[0]}",
    "zext": _zext,
    "sext": _sext,
    "trunc": _trunc,
    "bitcast": lambda ty, a, source: f"({VECTOR[ty]}){a[0]}",
    "lo32": lambda ty, a, source: _convert(a[0], ty),
    "hi32": lambda ty, a, source: _convert(f"({a[0]} >> 32)", ty),
    "hi16": lambda ty, a, source: _convert(f"({a[0]} >> 16)", ty),
    "hi8": lambda ty, a, source: _convert(f"({a[0]} >> 8)", ty),
    "pair": lambda ty, a, source: f"({_convert(a[1], ty)} << {BITS[source]} | {_convert(a[0], ty)})",
    "funo": lambda ty, a, source: f"la_as_mask(({a[0]} != {a[0]}) | ({a[1]} != {a[1]}))",
    "fneg": lambda ty, a, source: f"-{a[0]}",
    "fpext": lambda ty, a, source: _convert(a[0], ty),
    "fptrunc": lambda ty, a, source: _convert(a[0], ty),
    "sitofp": _from_integer,
    "fptosi": _to_integer,
}
