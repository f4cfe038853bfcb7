"""Conversions between integers and floating point, and between its widths."""

from __future__ import annotations

from layout_advise.mockup.ir.effects import BITS, Const, Expr, Ty
from layout_advise.mockup.ir.expressions import build
from layout_advise.mockup.machine.disassembly import Register
from layout_advise.mockup.machine.semantics.context import Context, rule
from layout_advise.mockup.machine.semantics.element_types import CONVERSIONS

_TYPES: dict[str, Ty] = {
    "ps": "f32", "ss": "f32", "pd": "f64", "sd": "f64", "dq": "i32", "udq": "i32", "qq": "i64", "uqq": "i64",
}  # fmt: skip


@rule("cvtsi2ss", "cvtsi2sd", "cvtusi2ss", "cvtusi2sd")
def from_integer(c: Context) -> None:
    dest, first, _ = c.sources()
    name = "uitofp" if c.name.startswith("cvtu") else "sitofp"
    c.set_scalar(dest, build(name, _TYPES[c.name[-2:]], c.integer(c.ops[-1])), first)


@rule(*(f"cvt{truncating}{source}2{kind}" for truncating in ("", "t") for source in ("ss", "sd") for kind in ("si", "usi")))
def to_integer(c: Context) -> None:
    truncating = c.name.startswith("cvtt")
    name = "fptoui" if c.name.endswith("usi") else "fptosi"
    dest = c.ops[0]
    source = _TYPES[c.name.removeprefix("cvtt").removeprefix("cvt")[:2]]
    ty: Ty = "i64" if c.size(dest) == 8 else "i32"
    c.set_integer(dest, build(name if truncating else f"{name}.rint", ty, c.scalar(c.ops[1], source)))


@rule("cvtss2sd", "cvtsd2ss")
def resize_scalar(c: Context) -> None:
    dest, first, second = c.sources()
    target = _TYPES[c.name[-2:]]
    value = c.scalar(second, _TYPES[c.name[3:5]])
    c.set_scalar(dest, build("fpext" if target == "f64" else "fptrunc", target, value), first)


@rule(*CONVERSIONS)
def convert_packed(c: Context) -> None:
    truncating = c.name.startswith("cvtt")
    first, _, second = (c.name[4:] if truncating else c.name[3:]).partition("2")
    source, target = _TYPES[first], _TYPES[second]
    operation = _operation(first, second, truncating)
    dest = c.vector(c.ops[0])
    # the wider side fills the vector: a ymm source of cvtpd2ps, the ymm destination of cvtps2pd
    width = c.vector_size() if c.insn.evex or isinstance(c.ops[1], Register) else _memory_width(c)
    count = width * 8 // max(BITS[source], BITS[target])
    values = c.elements(c.ops[1], source, count * BITS[source] // 8)
    result: list[Expr] = [build(operation, target, value) for value in values]
    if len(result) * BITS[target] < 128:  # two doubles to two 32-bit results: the upper half is cleared
        result += [Const(target, 0)] * 2
    c.set_packed(dest, result, count)


def _memory_width(c: Context) -> int:
    """Vector bytes of a conversion from memory: ``vcvtpd2ps xmm, ymmword [m]`` is known by its operand only."""
    return 32 if 32 in (c.size(c.ops[0]), c.size(c.ops[1])) else 16


def _operation(source: str, target: str, truncating: bool) -> str:
    """Between the types as the mnemonic has them: ``u`` is what has no sign."""
    if source.endswith("q"):
        return "uitofp" if source[0] == "u" else "sitofp"
    if target.endswith("q"):
        name = "fptoui" if target[0] == "u" else "fptosi"
        return name if truncating else f"{name}.rint"
    return "fpext" if target == "pd" else "fptrunc"
