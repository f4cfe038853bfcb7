"""The semantics table: what each instruction does, as :class:`layout_advise.mockup.ir.effects.Semantics`.

In comes a decoded instruction, out come its effects: :func:`semantics` finds the rule, which reads operands from a
``context`` (on ``scalars`` and ``elements``) and adds effects to it. The rules by kind: ``integer``, ``bits``, ``control``,
``atomic``, ``compare``, ``conversions``, ``floats``, ``strings``, ``x87``, and ``vectors/``; ``element_types`` lists the
AVX-512 forms that have one. An instruction without a rule, or in a form that its rule does not know, raises
:class:`layout_advise.errors.NotLiftedError`: nothing is guessed. MXCSR must hold round-to-nearest, without flush-to-zero and
denormals-are-zero, as programs start with.
"""

from __future__ import annotations

from layout_advise.mockup.ir.effects import Semantics
from layout_advise.mockup.machine.disassembly import Insn, MemoryOperand, Register
from layout_advise.mockup.machine.semantics import bits, compare, control, conversions, floats, integer, strings
from layout_advise.mockup.machine.semantics.atomic import ATOMIC, atomic
from layout_advise.mockup.machine.semantics.context import TABLE, Context
from layout_advise.mockup.machine.semantics.element_types import GRAINS
from layout_advise.mockup.machine.semantics.vectors import avx512, masks, moves, packed_integer, shuffles, subvectors
from layout_advise.mockup.machine.semantics.x87 import encoding, x87

_RULE_MODULES = (
    bits,
    compare,
    control,
    conversions,
    floats,
    integer,
    strings,
    packed_integer,
    shuffles,
    moves,
    masks,
    subvectors,
    avx512,
)
_REFUSED = {
    "syscall": "system call", "sysenter": "system call", "int": "system call", "cpuid": "cpuid", "rdtsc": "time stamp",
    "rdtscp": "time stamp", "emms": "MMX", "xgetbv": "xgetbv", "rdrand": "random numbers", "rdseed": "random numbers",
    "xbegin": "transaction", "xend": "transaction", "ldmxcsr": "changes the rounding mode",
    "vldmxcsr": "changes the rounding mode", "stmxcsr": "reads the rounding mode", "vstmxcsr": "reads the rounding mode",
}  # fmt: skip
_REFUSED_WIDE = {
    "rcp14": "approximation whose value depends on the processor",
    "rsqrt14": "approximation whose value depends on the processor",
    "fpclass": "classes of numbers", "compress": "compression", "expand": "expansion", "pcompress": "compression",
    "pexpand": "expansion", "permb": "byte permutation by a variable", "pconflict": "conflict detection",
}  # fmt: skip


def semantics(insn: Insn) -> Semantics:
    """The effects of ``insn``, without control flow; raises NotLiftedError where the table has no rule.

    A direct call gives one ``CallEffect`` without a name (:attr:`layout_advise.mockup.machine.cfg.Cfg.calls` has it); the
    return address that a call pushes and ``ret`` pops is not shown: rsp is the same before a call and after it.
    """
    reason = _refusal(insn)
    if reason is not None:
        raise insn.refuse(reason)
    context = Context(insn)
    if _is_atomic(insn):
        return atomic(context)
    if (stacked := encoding(insn)) is not None:
        x87(context, *stacked)
        return context.finish()
    found = TABLE.get(context.name)
    if found is None:
        raise insn.refuse("no rule for this instruction")
    found(context)
    return context.finish()


def _is_atomic(insn: Insn) -> bool:
    """Returns whether it has the lock prefix, or is an exchange with memory, which does not need it."""
    exchange = insn.mnemonic == "xchg" and any(isinstance(operand, MemoryOperand) for operand in insn.operands)
    return "lock" in insn.prefixes or exchange


def _refusal(insn: Insn) -> str | None:
    if insn.evex and (reason := _extended(insn)) is not None:
        return reason
    if _is_atomic(insn):
        return None if insn.mnemonic in ATOMIC else "atomic operation (lock)"
    if insn.mnemonic in _REFUSED:
        return _REFUSED[insn.mnemonic]
    for operand in insn.operands:
        if isinstance(operand, Register) and operand.kind == "other" and encoding(insn) is None:
            return {"m": "MMX"}.get(operand.name[:1], f"register {operand.name}")
    if insn.prefixes:
        return f"string operation ({insn.mnemonic})"
    return None


def _extended(insn: Insn) -> str | None:
    """Why an AVX-512 instruction is not lifted. That exceptions are suppressed says nothing: they are masked anyway."""
    if insn.rounding not in ("", "sae"):
        return f"AVX-512 with a rounding mode of its own ({{{insn.rounding}}})"
    name = insn.mnemonic.removeprefix("v")
    if name in GRAINS:
        return None
    return next((f"AVX-512: {why}" for start, why in _REFUSED_WIDE.items() if name.startswith(start)), "AVX-512: no rule")


assert all(_RULE_MODULES)
__all__ = ["semantics"]
