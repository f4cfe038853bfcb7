"""Conversions between integers and floating point, and between its widths."""

from __future__ import annotations

from layout_advise.mockup.disasm import Register
from layout_advise.mockup.effects import BITS, Const, Expr, Ty
from layout_advise.mockup.expr import build
from layout_advise.mockup.semantics.context import Context, rule

_TYPES: dict[str, Ty] = {"ps": "f32", "ss": "f32", "pd": "f64", "sd": "f64", "dq": "i32"}


@rule("cvtsi2ss", "cvtsi2sd")
def from_integer(c: Context) -> None:
    dest, first, _ = c.sources()
    c.set_scalar(dest, build("sitofp", _TYPES[c.name[-2:]], c.integer(c.ops[-1])), first)


@rule("cvttss2si", "cvttsd2si", "cvtss2si", "cvtsd2si")
def to_integer(c: Context) -> None:
    name = "fptosi" if c.name.startswith("cvtt") else "fptosi.rint"
    dest = c.ops[0]
    source = _TYPES[c.name.removeprefix("cvtt").removeprefix("cvt")[:2]]
    c.set_integer(dest, build(name, "i64" if c.size(dest) == 8 else "i32", c.scalar(c.ops[1], source)))


@rule("cvtss2sd", "cvtsd2ss")
def resize_scalar(c: Context) -> None:
    dest, first, second = c.sources()
    target = _TYPES[c.name[-2:]]
    value = c.scalar(second, _TYPES[c.name[3:5]])
    c.set_scalar(dest, build("fpext" if target == "f64" else "fptrunc", target, value), first)


@rule(
    "cvtps2pd", "cvtpd2ps", "cvtdq2pd", "cvtdq2ps", "cvttpd2dq", "cvtpd2dq", "cvttps2dq", "cvtps2dq",
)  # fmt: skip
def convert_packed(c: Context) -> None:
    truncating = c.name.startswith("cvtt")
    stem = c.name[4:] if truncating else c.name[3:]
    source, target = _TYPES[stem[:2]], _TYPES[stem[3:]]
    operation = _operation(source, target, truncating)
    dest = c.vector(c.ops[0])
    # the wider side fills the vector: a ymm source of cvtpd2ps, the ymm destination of cvtps2pd
    count = (c.vector_size() if isinstance(c.ops[1], Register) else _memory_width(c)) * 8 // max(BITS[source], BITS[target])
    values = c.elements(c.ops[1], source, count * BITS[source] // 8)
    result: list[Expr] = [build(operation, target, value) for value in values]
    if len(result) * BITS[target] < 128:  # two doubles to two 32-bit results: the upper half is cleared
        result += [Const(target, 0)] * 2
    c.set_packed(dest, result)


def _memory_width(c: Context) -> int:
    """Vector bytes of a conversion from memory: ``vcvtpd2ps xmm, ymmword [m]`` is known by its operand only."""
    return 32 if 32 in (c.size(c.ops[0]), c.size(c.ops[1])) else 16


def _operation(source: Ty, target: Ty, truncating: bool) -> str:
    if source == "i32":
        return "sitofp"
    if target == "i32":
        return "fptosi" if truncating else "fptosi.rint"
    return "fpext" if target == "f64" else "fptrunc"
