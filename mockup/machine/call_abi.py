"""Calls of functions that are not lifted: their argument registers, and the places they clobber (SysV ABI, 3.2).

Such a call stays a call of the machine code. Every register that may hold an argument is handed over as it is; the stack
pointer too where the frame is memory, so that arguments on the stack are where the callee looks for them.
"""

from __future__ import annotations

from dataclasses import dataclass

from layout_advise.mockup.ir.effects import Expr, Gpr, Lane

INTEGERS: tuple[Gpr | Lane, ...] = tuple(Gpr(n) for n in (7, 6, 2, 1, 8, 9))
"""rdi rsi rdx rcx r8 r9."""
VECTOR_COUNT: Gpr | Lane = Gpr(0)
"""al: how many vector registers hold arguments of a function that takes any number of them."""
VECTORS: tuple[Gpr | Lane, ...] = tuple(Lane(number, index) for number in range(8) for index in range(2))
"""The low 16 bytes of xmm0 to xmm7."""
WIDE_VECTORS: tuple[Gpr | Lane, ...] = tuple(Lane(number, index) for number in range(8) for index in range(4))
"""ymm0 to ymm7."""
RESULTS: tuple[Gpr | Lane, ...] = (Gpr(0), Gpr(2), Lane(0, 0), Lane(0, 1), Lane(1, 0), Lane(1, 1))
"""rax rdx xmm0 xmm1."""
KEPT: tuple[Gpr | Lane, ...] = (
    *(Gpr(n) for n in (0, 1, 2, 6, 7, 8, 9, 10, 11)),
    *(Lane(number, index) for number in range(16) for index in range(2)),
)
"""All registers that a callee may change, and that a local one may be known not to change."""

STRING_OPERATIONS = {
    f"{name}{letter}": size for name in ("movs", "stos") for letter, size in zip("bwdq", (1, 2, 4, 8), strict=True)
}
"""``rep`` operations that stay one instruction, with the bytes of an element."""

_TWICE = ("setjmp", "sigsetjmp", "vfork", "getcontext", "swapcontext")


@dataclass(frozen=True, slots=True)
class Opaque:
    """A call of ``target`` (i64); ``tail``: a jump, the return address is already on the stack; ``local``: of a function in
    the same file, where the caller may rely on registers that the callee does not happen to change (gcc's -fipa-ra)."""

    name: str | None
    target: Expr
    tail: bool = False
    local: bool = False
    takes: frozenset[Gpr | Lane] | None = None
    """The registers that may hold arguments; None where that is not known."""


@dataclass(frozen=True, slots=True)
class Clobbered:
    """``imm`` of an ``undef`` node: what a function of another file left in a register that it may change. No compiler lets
    anything depend on it; where it is computed with (to be masked away) any number serves."""

    function: str | None

    def __str__(self) -> str:
        return f"a register that the call of {self.function or 'an unknown function'} does not keep"


@dataclass(frozen=True, slots=True)
class OpaqueArguments:
    """``imm`` of an ``opaque`` node, whose args are the target, the stack pointer where ``stack``, and what ``places``
    hold."""

    name: str | None
    stack: bool
    places: tuple[Gpr | Lane, ...]
    sure: bool = False
    """Whether the callee is known to take no others."""


def refusal(name: str | None) -> str | None:
    """The reason why a function of this name cannot even be called; None where it can."""
    bare = (name or "").lstrip("_")
    if bare in _TWICE:
        return f"calls {name}, which returns twice"
    if (name or "").startswith("_ZGV"):
        return f"calls {name}, which takes whole vectors"
    return None


def register_name(place: Gpr | Lane) -> str:
    """``rax``, ``xmm0`` or, for the second eight bytes and those above, ``xmm0.1``..."""
    if isinstance(place, Gpr):
        return ("rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11")[place.number]
    return f"xmm{place.number}{f'.{place.index}' if place.index else ''}"
