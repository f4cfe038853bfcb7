"""x86 conditions as compares of the operands that set the flags.

The flags operations (type ``flags``):

* ``flags.sub(a, b)``, ``flags.add(a, b)`` · ``flags.sbb(a, b, c)``, ``flags.adc(a, b, c)``: borrow or carry ``c`` (i1)
* ``flags.logic(result)``: carry and overflow clear · ``flags.fcmp(a, b)``: (u)comis
* ``flags.inc(result, old)``, ``flags.dec(result, old)``: the carry of ``old``
* ``flags.carry(c, old)``: carry ``c``, zero flag of ``old``, the rest undefined (bt, rotates)
* ``flags.bits(c, z, s, o, p)``: each flag as an i1; ``undefined()`` for those that the processor leaves undefined
"""

from __future__ import annotations

from layout_advise.mockup.ir.effects import Const, Expr, Op, sign_bit
from layout_advise.mockup.ir.expressions import FALSE, TRUE, build, const, negate, trunc

_POSITIVE = {"no": "o", "ae": "b", "ne": "e", "a": "be", "ns": "s", "np": "p", "ge": "l", "g": "le"}


class UndefinedFlagError(ValueError):
    """The condition reads a flag that cannot be known from what set the flags."""


def resolve(cc: str, flags: Expr) -> Expr:
    """Condition ``cc`` (canonical spelling) as an i1 expression over the arguments of ``flags``.

    Raises :class:`UndefinedFlagError` where ``flags`` is no ``flags.*`` operation or leaves a flag undefined that ``cc``
    reads.
    """
    if cc in _POSITIVE:
        return _relation(cc, flags) or negate(resolve(_POSITIVE[cc], flags))
    found = _relation(cc, flags)
    if found is not None:
        return found
    if cc == "be":
        return build("or", "i1", resolve("b", flags), resolve("e", flags))
    if cc == "l":
        return build("xor", "i1", resolve("s", flags), resolve("o", flags))
    if cc == "le":
        return build("or", "i1", resolve("e", flags), resolve("l", flags))
    return _bit(cc, flags)


def parity(result: Expr) -> Expr:
    """The parity flag of ``result``: whether its low byte has an even number of ones."""
    count = build("popcnt", "i32", build("zext", "i32", trunc("i8", result)))
    return build("eq", "i1", build("and", "i32", count, Const("i32", 1)), Const("i32", 0))


def zero(result: Expr) -> Expr:
    """The zero flag of ``result``."""
    return build("eq", "i1", result, Const(result.ty, 0))


def negative(result: Expr) -> Expr:
    """The sign flag of ``result``."""
    return build("slt", "i1", result, Const(result.ty, 0))


def _relation(cc: str, flags: Expr) -> Expr | None:
    """The conditions that are one compare of the operands, or a known constant."""
    if not isinstance(flags, Op):
        return None
    if flags.name == "flags.sub":
        a, b = flags.args
        forms = {
            "e": ("eq", a, b), "ne": ("ne", a, b), "b": ("ult", a, b), "ae": ("ule", b, a), "be": ("ule", a, b),
            "a": ("ult", b, a), "l": ("slt", a, b), "ge": ("sle", b, a), "le": ("sle", a, b), "g": ("slt", b, a),
        }  # fmt: skip
        return build(forms[cc][0], "i1", *forms[cc][1:]) if cc in forms else None
    if flags.name == "flags.logic":
        (result,) = flags.args
        none = Const(result.ty, 0)
        same = {"l": "s", "ge": "ns", "be": "e", "a": "ne"}.get(cc, cc)
        logic = {"e": ("eq", result, none), "ne": ("ne", result, none), "s": ("slt", result, none),
                 "ns": ("sle", none, result), "le": ("sle", result, none), "g": ("slt", none, result)}  # fmt: skip
        return build(logic[same][0], "i1", *logic[same][1:]) if same in logic else None
    if flags.name == "flags.fcmp":
        return _float_relation(cc, *flags.args)
    return None


def _float_relation(cc: str, a: Expr, b: Expr) -> Expr | None:
    """(u)comis sets ZF, PF, CF = 111 when unordered, else as an unsigned compare; OF = SF = 0."""
    unordered = build("funo", "i1", a, b)
    match cc:
        case "a":
            return build("folt", "i1", b, a)
        case "ae":
            return build("fole", "i1", b, a)
        case "b":
            return negate(build("fole", "i1", b, a))
        case "be":
            return negate(build("folt", "i1", b, a))
        case "p":
            return unordered
        case "e":
            return build("or", "i1", build("foeq", "i1", a, b), unordered)
        case "o" | "s" | "l":
            return FALSE
        case "le":
            return resolve("e", Op("flags.fcmp", "flags", (a, b)))
    return None


def _bit(cc: str, flags: Expr) -> Expr:
    """One flag: ``b`` carry, ``e`` zero, ``s`` sign, ``o`` overflow, ``p`` parity."""
    if not isinstance(flags, Op) or not flags.name.startswith("flags."):
        raise UndefinedFlagError(f"condition {cc}: it is not known what set the flags")
    if flags.name == "flags.bits":
        found = flags.args["besop".index(cc)] if cc != "s" else flags.args[2]
        if isinstance(found, Op) and found.name == "undefined":
            raise UndefinedFlagError(f"condition {cc} reads a flag that is undefined here")
        return found
    if flags.name == "flags.carry":
        if cc == "b" and flags.args[0] != undefined():
            return flags.args[0]
        if cc == "e":
            return resolve("e", flags.args[1])
        raise UndefinedFlagError(f"condition {cc} reads a flag that is undefined here")
    if cc in ("o", "b"):
        return _carry(flags) if cc == "b" else _overflow(flags)
    result = _result(flags)
    return {"e": zero, "s": negative, "p": parity}[cc](result)


def _result(flags: Op) -> Expr:
    args = flags.args
    ty = args[0].ty
    match flags.name:
        case "flags.sub":
            return build("sub", ty, args[0], args[1])
        case "flags.add":
            return build("add", ty, args[0], args[1])
        case "flags.sbb":
            return build("sub", ty, build("sub", ty, args[0], args[1]), build("zext", ty, args[2]))
        case "flags.adc":
            return build("add", ty, build("add", ty, args[0], args[1]), build("zext", ty, args[2]))
        case "flags.logic" | "flags.inc" | "flags.dec":
            return args[0]
    raise UndefinedFlagError(f"{flags.name} has no result")


def _carry(flags: Op) -> Expr:
    args = flags.args
    match flags.name:
        case "flags.sub":
            return build("ult", "i1", args[0], args[1])
        case "flags.add":
            return build("ult", "i1", _result(flags), args[0])
        case "flags.sbb":
            return build("select", "i1", args[2], build("ule", "i1", args[0], args[1]), build("ult", "i1", args[0], args[1]))
        case "flags.adc":
            result = _result(flags)
            return build("select", "i1", args[2], build("ule", "i1", result, args[0]), build("ult", "i1", result, args[0]))
        case "flags.logic":
            return FALSE
        case "flags.inc" | "flags.dec":
            return resolve("b", args[1])
    raise UndefinedFlagError(f"{flags.name} has no carry")


def _overflow(flags: Op) -> Expr:
    args = flags.args
    ty = args[0].ty
    match flags.name:
        case "flags.logic":
            return FALSE
        case "flags.inc":
            return build("eq", "i1", args[0], const(ty, sign_bit(ty)))
        case "flags.dec":
            return build("eq", "i1", args[0], const(ty, sign_bit(ty) - 1))
        case "flags.sub" | "flags.sbb":
            changed = build("xor", ty, args[0], args[1])
        case "flags.add" | "flags.adc":
            changed = build("not", ty, build("xor", ty, args[0], args[1]))
        case _:
            raise UndefinedFlagError(f"{flags.name} has no overflow")
    return negative(build("and", ty, changed, build("xor", ty, args[0], _result(flags))))


def undefined() -> Op:
    """A flag that the processor leaves undefined."""
    return Op("undefined", "i1", ())


__all__ = ["FALSE", "TRUE", "UndefinedFlagError", "negative", "parity", "resolve", "undefined", "zero"]
