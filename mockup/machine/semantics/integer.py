"""Integer moves, arithmetic and logic on general registers and memory."""

from __future__ import annotations

from layout_advise.mockup.ir.effects import BITS, Const, Expr
from layout_advise.mockup.ir.expressions import build, sext, trunc, zext
from layout_advise.mockup.machine.cfg import CONDITIONS
from layout_advise.mockup.machine.conditions import undefined
from layout_advise.mockup.machine.disassembly import Immediate, MemoryOperand, Register
from layout_advise.mockup.machine.semantics.context import Context, rule
from layout_advise.mockup.machine.semantics.elements import INTEGER

_RAX, _RDX = 0, 2


def _size(c: Context) -> int:
    """Operand size: that of the first operand that is not a constant."""
    return c.size(next(op for op in c.ops if not isinstance(op, Immediate)))


@rule("mov", "movabs", "movnti")
def mov(c: Context) -> None:
    c.set_integer(c.ops[0], c.integer(c.ops[1], c.size(c.ops[0])))


@rule("movbe")
def movbe(c: Context) -> None:
    value = c.integer(c.ops[1])
    c.set_integer(c.ops[0], _swapped(value))


def _swapped(value: Expr) -> Expr:
    if value.ty == "i16":
        return build("rotl", "i16", value, Const("i16", 8))
    return build("bswap", value.ty, value)


@rule("bswap")
def bswap(c: Context) -> None:
    if c.size(c.ops[0]) == 2:
        raise c.refuse("undefined result")
    c.set_integer(c.ops[0], _swapped(c.integer(c.ops[0])))


@rule("movzx", "movsx", "movsxd")
def extend(c: Context) -> None:
    ty = INTEGER[c.size(c.ops[0])]
    value = c.integer(c.ops[1])
    c.set_integer(c.ops[0], zext(ty, value) if c.name == "movzx" else sext(ty, value))


@rule("lea")
def lea(c: Context) -> None:
    source = c.ops[1]
    assert isinstance(source, MemoryOperand)
    if source.narrow:
        raise c.refuse("32-bit address arithmetic")
    c.set_integer(c.ops[0], trunc(INTEGER[c.size(c.ops[0])], c.effective(source)))


@rule("xchg")
def xchg(c: Context) -> None:
    first, second = c.integer(c.ops[0]), c.integer(c.ops[1])
    if c.ops[0] == c.ops[1]:
        c.set_integer(c.ops[0], first)
        return
    a, b = c.ops
    assert isinstance(a, Register)
    assert isinstance(b, Register)
    if a.number == b.number:
        raise c.refuse("exchange within one register")
    c.set_integer(a, second)
    c.set_integer(b, first)


@rule("cbw", "cwde", "cdqe")
def widen_accumulator(c: Context) -> None:
    source, target = {"cbw": (1, 2), "cwde": (2, 4), "cdqe": (4, 8)}[c.name]
    c.set_gpr(_RAX, sext(INTEGER[target], c.gpr(_RAX, source)))


@rule("cwd", "cdq", "cqo")
def sign_to_rdx(c: Context) -> None:
    ty = INTEGER[{"cwd": 2, "cdq": 4, "cqo": 8}[c.name]]
    c.set_gpr(_RDX, build("ashr", ty, c.gpr(_RAX, BITS[ty] // 8), Const(ty, BITS[ty] - 1)))


@rule("add", "sub")
def add_sub(c: Context) -> None:
    size = _size(c)
    a, b = c.integer(c.ops[0]), c.integer(c.ops[1], size)
    c.set_flags(c.name, a, b)
    c.set_integer(c.ops[0], build(c.name, a.ty, a, b))


@rule("adc", "sbb")
def with_carry(c: Context) -> None:
    a, b = c.integer(c.ops[0]), c.integer(c.ops[1], _size(c))
    carry = c.condition("b")
    name = "add" if c.name == "adc" else "sub"
    if name == "sub" and c.ops[0] == c.ops[1]:  # the idiom for a mask: independent of the register's value
        c.set_flags("sbb", Const(a.ty, 0), Const(a.ty, 0), carry)
        c.set_integer(c.ops[0], sext(a.ty, carry))
        return
    c.set_flags(c.name, a, b, carry)
    c.set_integer(c.ops[0], build(name, a.ty, build(name, a.ty, a, b), zext(a.ty, carry)))


@rule("adcx", "adox")
def adx(c: Context) -> None:
    raise c.refuse("multi-word carry chain")


@rule("cmp")
def cmp(c: Context) -> None:
    c.set_flags("sub", c.integer(c.ops[0], _size(c)), c.integer(c.ops[1], _size(c)))


@rule("test")
def test(c: Context) -> None:
    a, b = c.integer(c.ops[0], _size(c)), c.integer(c.ops[1], _size(c))
    c.set_flags("logic", build("and", a.ty, a, b))


@rule("and", "or", "xor")
def logic(c: Context) -> None:
    a, b = c.integer(c.ops[0]), c.integer(c.ops[1], _size(c))
    result = build(c.name, a.ty, a, b)
    c.set_flags("logic", result)
    c.set_integer(c.ops[0], result)


@rule("not")
def complement(c: Context) -> None:
    a = c.integer(c.ops[0])
    c.set_integer(c.ops[0], build("not", a.ty, a))


@rule("neg")
def neg(c: Context) -> None:
    a = c.integer(c.ops[0])
    c.set_flags("sub", Const(a.ty, 0), a)
    c.set_integer(c.ops[0], build("neg", a.ty, a))


@rule("inc", "dec")
def step(c: Context) -> None:
    a = c.integer(c.ops[0])
    result = build("add" if c.name == "inc" else "sub", a.ty, a, Const(a.ty, 1))
    c.step_flags(c.name, result)
    c.set_integer(c.ops[0], result)


@rule(*(f"cmov{cc}" for cc in CONDITIONS))
def cmov(c: Context) -> None:
    # The load happens whether or not the condition holds, and a 32-bit destination is cleared above in both cases.
    yes, no = c.integer(c.ops[1]), c.integer(c.ops[0])
    c.set_integer(c.ops[0], build("select", no.ty, c.condition(CONDITIONS[c.name[4:]]), yes, no))


@rule(*(f"set{cc}" for cc in CONDITIONS))
def setcc(c: Context) -> None:
    c.set_integer(c.ops[0], zext("i8", c.condition(CONDITIONS[c.name[3:]])))


@rule("imul")
def imul(c: Context) -> None:
    if len(c.ops) == 1:
        multiply_wide(c)
        return
    size = c.size(c.ops[0])
    a = c.integer(c.ops[-2] if len(c.ops) == 3 else c.ops[0])
    b = c.integer(c.ops[-1], size)
    result = build("mul", a.ty, a, b)
    if size == 8:
        high = build("smulhi", "i64", a, b)
        overflow = build("ne", "i1", high, build("ashr", "i64", result, Const("i64", 63)))
    else:
        overflow = build("ne", "i1", build("mul", "i64", sext("i64", a), sext("i64", b)), sext("i64", result))
    _carry_overflow(c, overflow)
    c.set_integer(c.ops[0], result)


def _joined(low: Expr, high: Expr) -> Expr:
    """Two i8 as an i16."""
    return build("or", "i16", zext("i16", low), build("shl", "i16", zext("i16", high), Const("i16", 8)))


def _carry_overflow(c: Context, both: Expr) -> None:
    c.set_flags("bits", both, undefined(), undefined(), both, undefined())


@rule("mul")
def multiply_wide(c: Context) -> None:
    """rdx:rax = rax * operand (8-bit: ax)."""
    signed = c.name == "imul"
    b = c.integer(c.ops[0])
    a = c.gpr(_RAX, BITS[b.ty] // 8)
    if b.ty == "i64":
        low = build("mul", "i64", a, b)
        high = build("smulhi" if signed else "umulhi", "i64", a, b)
    else:
        widen = sext if signed else zext
        product = build("mul", "i64", widen("i64", a), widen("i64", b))
        low = trunc(b.ty, product)
        high = trunc(b.ty, build("lshr", "i64", product, Const("i64", BITS[b.ty])))
    fill = build("ashr", b.ty, low, Const(b.ty, BITS[b.ty] - 1)) if signed else Const(b.ty, 0)
    _carry_overflow(c, build("ne", "i1", high, fill))
    if b.ty == "i8":
        c.set_gpr(_RAX, _joined(low, high))
    else:
        c.set_gpr(_RAX, low)
        c.set_gpr(_RDX, high)


@rule("div", "idiv")
def divide(c: Context) -> None:
    """Quotient and remainder of rdx:rax by the operand. ``wide.*`` operations stay only where the upper half is unknown."""
    kind = "s" if c.name == "idiv" else "u"
    b = c.integer(c.ops[0])
    c.set_flags("bits", *(undefined() for _ in range(5)))
    if b.ty == "i8":
        widen = sext if kind == "s" else zext
        dividend, divisor = widen("i32", c.gpr(_RAX, 2)), widen("i32", b)
        quotient = trunc("i8", build(f"{kind}div", "i32", dividend, divisor))
        remainder = trunc("i8", build(f"{kind}rem", "i32", dividend, divisor))
        c.set_gpr(
            _RAX, build("or", "i16", zext("i16", quotient), build("shl", "i16", zext("i16", remainder), Const("i16", 8)))
        )
        return
    low, high = c.gpr(_RAX, BITS[b.ty] // 8), c.gpr(_RDX, BITS[b.ty] // 8)
    c.set_gpr(_RAX, build(f"wide.{kind}div", b.ty, high, low, b))
    c.set_gpr(_RDX, build(f"wide.{kind}rem", b.ty, high, low, b))
