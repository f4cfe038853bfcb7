"""Floating-point arithmetic, bitwise logic on vectors, rounding, fused multiply-add."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

from layout_advise.mockup.ir.effects import Const, Expr, Ty
from layout_advise.mockup.ir.expressions import build
from layout_advise.mockup.machine.disassembly import Immediate
from layout_advise.mockup.machine.semantics.context import Context, rule

KINDS = ("ps", "pd", "ss", "sd")
_OPERATIONS = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv", "min": "fmin", "max": "fmax"}
_ROUNDING = ("rint", "floor", "ceil", "ftrunc")
_CURRENT_MODE = 4


def float_type(mnemonic: str) -> Ty:
    """Element type by the last letter: ``s`` single, ``d`` double."""
    return "f32" if mnemonic.endswith("s") else "f64"


def is_packed(mnemonic: str) -> bool:
    """Returns whether the mnemonic ends in ps or pd."""
    return mnemonic[-2] == "p"


def elementwise(c: Context, compute: Callable[[Expr, Expr], Expr]) -> None:
    """``dest = compute(first, second)`` per element, or on the lowest one with the rest from the first source."""
    ty = float_type(c.name)
    dest, first, second = c.sources()
    if is_packed(c.name):
        size = c.vector_size()
        pairs = zip(c.elements(first, ty, size), c.elements(second, ty, size), strict=True)
        c.set_packed(dest, [compute(a, b) for a, b in pairs])
    else:
        c.set_scalar(dest, compute(c.scalar(first, ty), c.scalar(second, ty)), first)


@rule(*(f"{name}{kind}" for name, kind in product(_OPERATIONS, KINDS)))
def arithmetic(c: Context) -> None:
    name = _OPERATIONS[c.name[:-2]]
    elementwise(c, lambda a, b: build(name, a.ty, a, b))


@rule(*(f"sqrt{kind}" for kind in KINDS))
def square_root(c: Context) -> None:
    elementwise(c, lambda a, b: build("fsqrt", b.ty, b))


@rule(*(f"{name}{kind}" for name, kind in product(("round", "rndscale"), KINDS)))
def rounding(c: Context) -> None:
    immediate = c.immediate()
    if c.name.startswith("rndscale") and immediate >> 4:
        raise c.refuse("rounds to a fraction")
    name = "rint" if immediate & _CURRENT_MODE else _ROUNDING[immediate & 3]
    elementwise(c, lambda a, b: build(name, b.ty, b))


@rule("addsubps", "addsubpd")
def addsub(c: Context) -> None:
    ty = float_type(c.name)
    dest, first, second = c.sources()
    size = c.vector_size()
    pairs = zip(c.elements(first, ty, size), c.elements(second, ty, size), strict=True)
    c.set_packed(dest, [build("fadd" if i % 2 else "fsub", ty, a, b) for i, (a, b) in enumerate(pairs)])


@rule("haddps", "haddpd", "hsubps", "hsubpd")
def horizontal(c: Context) -> None:
    ty = float_type(c.name)
    name = "fadd" if c.name.startswith("hadd") else "fsub"
    dest, first, second = c.sources()
    size = c.vector_size()
    a, b = c.elements(first, ty, size), c.elements(second, ty, size)
    per = 16 // (4 if ty == "f32" else 8)
    result = [
        build(name, ty, source[i], source[i + 1])
        for at in range(0, len(a), per)
        for source in (a, b)
        for i in range(at, at + per, 2)
    ]
    c.set_packed(dest, result)


@rule(
    "andps", "andpd", "pand", "orps", "orpd", "por", "xorps", "xorpd", "pxor", "andnps", "andnpd", "pandn",
    "pandd", "pandq", "pord", "porq", "pxord", "pxorq", "pandnd", "pandnq",
)  # fmt: skip
def bitwise(c: Context) -> None:
    stem = next(name for name in ("andn", "and", "xor", "or") if name in c.name)
    dest, first, second = c.sources()
    size = c.vector_size()
    a, b = c.lanes(first, size), c.lanes(second, size)
    if stem == "andn":
        a = [build("not", "i64", x) for x in a]
    c.set_packed(dest, [build(stem.removesuffix("n"), "i64", x, y) for x, y in zip(a, b, strict=True)])


def _fused(c: Context, negate_product: bool, signs: Callable[[int], bool]) -> None:
    """``signs(i)`` tells whether element ``i`` subtracts its addend."""
    ty = float_type(c.name)
    dest = c.vector(c.ops[0])
    order = next(digits for digits in ("132", "213", "231") if digits in c.name)
    size = c.vector_size() if is_packed(c.name) else (4 if ty == "f32" else 8)
    operands = [c.elements(op, ty, size) for op in c.ops[:3]]
    x, y, z = (operands[int(digit) - 1] for digit in order)
    result = []
    for i, (a, b, addend) in enumerate(zip(x, y, z, strict=True)):
        left = build("fneg", ty, a) if negate_product else a
        right = build("fneg", ty, addend) if signs(i) else addend
        result.append(build("fma", ty, left, b, right))
    if is_packed(c.name):
        c.set_packed(dest, result)
    else:
        c.set_scalar(dest, result[0], c.ops[0])


_ORDERS = ("132", "213", "231")


@rule(*(f"f{n}m{op}{order}{kind}" for n, op, order, kind in product(("", "n"), ("add", "sub"), _ORDERS, KINDS)))
def fused(c: Context) -> None:
    subtract = "sub" in c.name
    _fused(c, c.name.startswith("fn"), lambda i: subtract)


@rule(*(f"fm{op}{order}{kind}" for op, order, kind in product(("addsub", "subadd"), _ORDERS, ("ps", "pd"))))
def fused_alternating(c: Context) -> None:
    first = "addsub" in c.name
    _fused(c, False, lambda i: (i % 2 == 0) == first)


@rule("rcpps", "rcpss", "rsqrtps", "rsqrtss")
def approximation(c: Context) -> None:
    raise c.refuse("approximation whose value depends on the processor")


@rule("dppd", "dpps")
def dot_product(c: Context) -> None:
    """Elements chosen by the upper immediate bits, summed pairwise, sent to those of the lower bits."""
    ty = float_type(c.name)
    immediate = c.ops[-1]
    assert isinstance(immediate, Immediate)
    dest, first, second = c.sources()
    size = c.vector_size()
    a, b = c.elements(first, ty, size), c.elements(second, ty, size)
    zero = Const(ty, 0)
    per = 4 if ty == "f32" else 2
    result: list[Expr] = []
    for at in range(0, len(a), per):
        terms = [build("fmul", ty, a[at + i], b[at + i]) if immediate.value >> (4 + i) & 1 else zero for i in range(per)]
        sums = [build("fadd", ty, terms[i], terms[i + 1]) for i in range(0, per, 2)]
        total = sums[0] if len(sums) == 1 else build("fadd", ty, *sums)
        result += [total if immediate.value >> i & 1 else zero for i in range(per)]
    c.set_packed(dest, result)
