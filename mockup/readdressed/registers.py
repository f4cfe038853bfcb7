"""The general registers in a region's code: those that hold nothing which is still read, and those that change."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from layout_advise.errors import LayoutAdviseError
from layout_advise.mockup.machine.cfg import Cfg, TailCall, build_cfg
from layout_advise.mockup.machine.disassembly import Insn, MemoryOperand, Register
from layout_advise.mockup.machine.liveness import Liveness, uses_and_kills
from layout_advise.tracer.code.decoder import GPR, disassemble
from layout_advise.tracer.code.flow import implicit_registers
from layout_advise.tracer.code.instructions import functions_of
from layout_advise.tracer.code.operands import RSP
from layout_advise.tracer.code.region import Region

ORDER = (11, 10, 9, 8, 2, 1, 6, 7, 0, 3, 5, 14, 15, 13, 12)
"""The order in which registers are taken: those first that calls do not preserve."""
_LOADS = ("mov", "movzx", "movsx", "movsxd")


@dataclass(frozen=True, slots=True)
class RegisterUse:
    """By the address of an instruction that is reached: the registers that are ``free`` before it, those that it has
    ``changed`` afterwards, and the one that it is a load of (``result``), which may hold its address. ``blocks`` are the
    instructions that run one after the other, without calls."""

    free: Mapping[int, frozenset[int]]
    changed: Mapping[int, frozenset[int]]
    result: Mapping[int, int]
    blocks: tuple[tuple[int, ...], ...]


def registers_of(region: Region) -> RegisterUse:
    """The registers in the code of ``region`` and its callees; nothing of functions whose control flow is not known. A
    register that a function never writes is not free in it: what calls it may count on that (gcc's -fipa-ra)."""
    free: dict[int, frozenset[int]] = {}
    changed: dict[int, frozenset[int]] = {}
    results: dict[int, int] = {}
    blocks: list[tuple[int, ...]] = []
    for function in functions_of(region):
        try:
            live = Liveness(build_cfg(function, indirect_calls=True, loops=False, strict=False))
        except LayoutAdviseError:
            continue
        insns = [insn for block in live.cfg.blocks.values() for insn in block.insns]
        written = {number for insn in insns for kind, number in uses_and_kills(insn)[1] if kind == "g"} - {RSP}
        for start in live.cfg.blocks:
            for address, names in live.each(start):
                here = frozenset(written) - {number for kind, number in names if kind == "g"}
                free[address] = here & free.get(address, here)
        for insn in insns:
            changed[insn.address] = _changed(insn)
            if (register := _result(insn)) is not None:
                results[insn.address] = register
        blocks += _without_calls(live.cfg)
    return RegisterUse(free, changed, results, tuple(blocks))


def _without_calls(cfg: Cfg) -> Iterable[tuple[int, ...]]:
    ends = [block.terminator for block in cfg.blocks.values()]
    if any(isinstance(end, TailCall) and end.target is None for end in ends):  # a jump may lead into a block
        return
    for block in cfg.blocks.values():
        piece: list[int] = []
        for insn in block.insns:
            piece.append(insn.address)
            if insn.address in cfg.calls:
                yield tuple(piece)
                piece = []
        yield tuple(piece)


def _changed(insn: Insn) -> frozenset[int]:
    decoded = next(iter(disassemble(insn.bytes, insn.address, 1)))
    numbers = {GPR[name] for name in decoded.regs_access()[1] if name in GPR}
    return frozenset(numbers) | implicit_registers(insn.mnemonic)


def _result(insn: Insn) -> int | None:
    first, *rest = insn.operands or (None,)
    loads = insn.mnemonic in _LOADS and any(isinstance(o, MemoryOperand) for o in rest)
    if not loads or not isinstance(first, Register):
        return None
    return first.number if first.kind == "gpr" and first.bytes >= 4 and first.number != RSP else None
