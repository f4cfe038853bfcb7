"""The effects of one instruction, as data: the output of the semantics table, the input of the SSA builder.

Machine state is a set of 64-bit *locations*: 16 general registers, 32 vector registers of eight 64-bit lanes each, and
the flags; the single bits (``i1``) of the eight mask registers, of which each governs an element by itself; and the eight
registers of the x87 stack (``f80``). Another location
holds a raw 64-bit integer (``i64``); floating-point values are reached by ``bitcast``, 32-bit halves by ``lo32``/``hi32``
and rejoined by ``pair``. The rules (:mod:`layout_advise.mockup.ir.rules`) simplify ``bitcast(bitcast(x))``,
``lo32(pair(a, b))`` and the like, so that a shuffle becomes renaming and an unread lane vanishes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

Ty = Literal["i1", "i8", "i16", "i32", "i64", "f32", "f64", "f80", "flags"]
"""``flags`` is the type of the flags location only; see :class:`Op`. ``f80`` is what x87 registers hold."""

BITS: dict[Ty, int] = {
    "i1": 1, "i8": 8, "i16": 16, "i32": 32, "i64": 64, "f32": 32, "f64": 64, "f80": 80, "flags": 0,
}  # fmt: skip


def mask(ty: Ty) -> int:
    """All ones of ``ty``."""
    return (1 << BITS[ty]) - 1


def sign_bit(ty: Ty) -> int:
    """The highest bit of ``ty``."""
    return 1 << (BITS[ty] - 1)


@dataclass(frozen=True, slots=True)
class Gpr:
    """General register, numbered as encoded: rax rcx rdx rbx rsp rbp rsi rdi r8 .. r15."""

    number: int


FS_BASE = Gpr(16)
"""Pseudo-register: where the thread's own data is (``fs:0``)."""
CALL_TARGET = Gpr(17)
"""Pseudo-register: the address that an indirect call goes to, between the call's own load and the call."""


@dataclass(frozen=True, slots=True)
class Lane:
    """64-bit lane ``index`` (0..7) of vector register ``number`` (0..31)."""

    number: int
    index: int


@dataclass(frozen=True, slots=True)
class MaskBit:
    """Bit ``index`` (0..63) of mask register ``number`` (0..7): a location of type ``i1``."""

    number: int
    index: int


@dataclass(frozen=True, slots=True)
class Flags:
    """The status flags as one symbolic value: the operation that set them, not the bits."""


@dataclass(frozen=True, slots=True)
class X87:
    """Register ``number`` of the x87 stack, from the top (0..7): a location of type ``f80``."""

    number: int


@dataclass(frozen=True, slots=True)
class X87Depth:
    """The count of numbers pushed on the x87 stack since the entry, less those popped: a location of type ``i64``."""


Location = Gpr | Lane | MaskBit | Flags | X87 | X87Depth


@dataclass(frozen=True, slots=True)
class Const:
    """``value`` is the bit pattern, unsigned, ``0 <= value < 2**BITS[ty]`` (floats too)."""

    ty: Ty
    value: int

    op: ClassVar[str] = "const"
    args: ClassVar[tuple[Expr, ...]] = ()

    @property
    def imm(self) -> int:
        """The bit pattern, under the name that the rules read (:mod:`layout_advise.mockup.ir.rules.form`)."""
        return self.value


@dataclass(frozen=True, slots=True)
class Read:
    """The value of a location before the instruction."""

    location: Location
    ty: Ty  # "i64", "i1" of a mask's bit, "f80" of an x87 register, or "flags"

    op: ClassVar[str] = "read"
    args: ClassVar[tuple[Expr, ...]] = ()
    imm: ClassVar[Any] = None


@dataclass(frozen=True, slots=True)
class Temp:
    """The value that the instruction's ``LoadEffect`` number ``number`` got."""

    number: int
    ty: Ty

    op: ClassVar[str] = "temp"
    args: ClassVar[tuple[Expr, ...]] = ()
    imm: ClassVar[Any] = None


@dataclass(frozen=True, slots=True)
class Op:
    """``name`` applied to ``args``; the result has type ``ty``.

    Integer (all arguments and result of one type, wrap-around): ``add sub mul and or xor shl lshr ashr rotl neg not
    umulhi smulhi udiv urem sdiv srem popcnt lzcnt tzcnt bswap umin umax smin smax``. Shift counts are already masked as
    x86 does. ``pickbytes(low, high, mask)``: of these 16 bytes those that the low four bits of the mask's bytes number, 0
    where the top bit is set. Width: ``zext sext trunc`` · ``bitcast`` (same width) · ``lo32 hi32`` (i64 to i32),
    ``hi16`` (i32 to i16), ``hi8`` (i16 to i8), ``pair`` (low and high half to twice the width). Compare to i1:
    ``eq ne slt sle ult ule`` and on floats ``foeq folt fole funo`` (ordered; ``funo`` is true when either is NaN).
    ``select(i1, a, b)``; i1 also takes ``and or xor not``.
    Float: ``fadd fsub fmul fdiv fsqrt fneg fabs fma`` (``a*b+c``, rounded once), ``fmin fmax`` as x86 has them
    (``a < b ? a : b`` and ``a > b ? a : b``: the second operand when equal or unordered), ``fpext fptrunc sitofp`` (from
    i32/i64) ``uitofp fptosi`` (truncation, x86's integer-indefinite on overflow) ``fptosi.rint floor ceil ftrunc rint``,
    ``fptoui fptoui.rint`` (all ones on overflow).
    Flags (type ``flags``): ``flags.sub(a, b)``, ``flags.add(a, b)``, ``flags.logic(result)``, ``flags.fcmp(a, b)``
    ((u)comis), ``flags.inc(result, old)``, ``flags.dec(result, old)``, ``flags.bits(c, z, s, o, p)`` and others that only
    some conditions can be read from. Condition: ``cond.CC(flags)`` to i1 with CC an x86 condition code in its canonical
    spelling (``o no b ae e ne be a s ns p np l ge le g``); it is resolved to compares once the SSA builder knows which flags
    reach it
    (:mod:`layout_advise.mockup.machine.conditions` lists the flags operations and resolves). ``wide.udiv wide.urem wide.sdiv
    wide.srem (high, low, divisor)``: x86's 128-bit divisions; the rules turn them into plain ones as soon as the high
    half is seen to extend the low one, and what stays wide cannot be lifted.
    """

    name: str
    ty: Ty
    args: tuple[Expr, ...]

    imm: ClassVar[Any] = None

    @property
    def op(self) -> str:
        """The operation, under the name that the rules read (:mod:`layout_advise.mockup.ir.rules.form`)."""
        return self.name


Expr = Const | Read | Temp | Op


@dataclass(frozen=True, slots=True)
class SetEffect:
    """``location = value``; all Sets of an instruction happen at once, after its loads."""

    location: Location
    value: Expr


@dataclass(frozen=True, slots=True)
class LoadEffect:
    """Load ``BITS[ty] / 8`` bytes at ``address`` (i64). A 32-byte vector load is four of these.

    ``operand`` is the operand number of the traced :class:`~layout_advise.tracer.trace.trace.Reference` (0 unless the
    instruction has several memory operands, or lanes), ``part`` the byte offset of this piece within that reference.
    ``guard`` (i1), where present, tells whether the access happens at all (masked moves).
    """

    number: int
    ty: Ty
    address: Expr
    operand: int = 0
    part: int = 0
    guard: Expr | None = None


@dataclass(frozen=True, slots=True)
class StoreEffect:
    """Store ``value`` at ``address``; fields as in :class:`LoadEffect`."""

    ty: Ty
    address: Expr
    value: Expr
    operand: int = 0
    part: int = 0
    guard: Expr | None = None


@dataclass(frozen=True, slots=True)
class AtomicEffect:
    """One indivisible operation on memory (``lock add``, ``xchg``): temp ``number`` gets what stood at ``address``, and in
    its place comes ``operation`` (see :class:`layout_advise.mockup.ir.lifted.Atomic`) of that and ``args``: one reference.
    """

    number: int
    ty: Ty
    operation: str
    address: Expr
    args: tuple[Expr, ...]
    operand: int = 0


@dataclass(frozen=True, slots=True)
class PrefetchEffect:
    """The cache is told that ``address`` will be accessed; ``hint`` is how, the mnemonic's end (``t0``, ``nta``, ``w``). It
    is no traced reference, and an address that is none does no harm."""

    address: Expr
    hint: str


@dataclass(frozen=True, slots=True)
class CallEffect:
    """A call. ``target`` is a run-time address; ``name`` the symbol where known (``exp@plt`` as ``exp``)."""

    target: int
    name: str | None


Effect = LoadEffect | StoreEffect | AtomicEffect | PrefetchEffect | SetEffect | CallEffect


@dataclass(frozen=True, slots=True)
class Semantics:
    """All that one instruction does, but for control flow: loads first, then stores and sets.

    ``packed`` tells that the effects are the lanes of one packed operation (the emitter may re-emit them as a vector
    statement). ``width`` is the vector width in bytes (0 for scalar instructions).
    """

    effects: tuple[Effect, ...]
    packed: bool = False
    width: int = 0
